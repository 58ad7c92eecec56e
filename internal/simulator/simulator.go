// Package simulator is a program that plays Tekton's controllers on a real API server: it moves PipelineRuns and TaskRuns
// through the life that package life describes, whoever created them, creates runs of its own, and deletes what has been
// finished for a while.
//
// It keeps no state but what is in the objects, so that it can be stopped and started anywhere. What it writes it writes
// with the resourceVersion it decided on; whoever else writes to the same objects is never overwritten.
package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"hangar.io/glidepath/internal/simulator/life"
	"hangar.io/glidepath/internal/simulator/pods"
)

// Config says where the simulator works, and how busily.
type Config struct {
	// REST reaches the API server. Required.
	REST *rest.Config
	// Namespaces the simulator creates runs in, and moves runs of. At least one.
	Namespaces []string
	// RunsInFlight is how many unfinished runs of its own the simulator keeps going. Zero: it only moves others' runs.
	RunsInFlight int
	// Seed decides every run's name, pipeline and fate.
	Seed uint64
	// Pace stretches how long things take: 0.1 is ten times as fast. Zero: 1, with which a run takes about a minute.
	Pace float64
	// Retention is how long a finished run stays before it is deleted. Zero: ten minutes.
	Retention time.Duration
	// Pods, when set, gives the TaskRuns their Pods.
	Pods *pods.Keeper
	// Clock is the time everything happens in. Nil: the real one.
	Clock clock.WithTicker
	// Logger gets a line for what went wrong, and at debug level for what is tried again. Nil: slog.Default.
	Logger *slog.Logger
}

const (
	defaultRetention = 10 * time.Minute
	// mostInFlight bounds the runs of its own.
	mostInFlight = 1000
	// workers move objects side by side; together with one request at a time each they bound the load.
	workers = 4
)

func (c Config) validate() error {
	var faults []error
	if c.REST == nil {
		faults = append(faults, errors.New("no REST configuration"))
	}
	if len(c.Namespaces) == 0 {
		faults = append(faults, errors.New("no namespaces"))
	}
	if c.RunsInFlight < 0 || c.RunsInFlight > mostInFlight {
		faults = append(faults, fmt.Errorf("%d runs in flight, want 0 to %d", c.RunsInFlight, mostInFlight))
	}
	if c.Pace < 0 {
		faults = append(faults, fmt.Errorf("pace %g, want more than 0", c.Pace))
	}
	if c.Retention < 0 {
		faults = append(faults, fmt.Errorf("retention %s, want more than 0", c.Retention))
	}
	return errors.Join(faults...)
}

func (c Config) withDefaults() Config {
	if c.Pace == 0 {
		c.Pace = 1
	}
	if c.Retention == 0 {
		c.Retention = defaultRetention
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Simulator plays Tekton's controllers. Run it once.
type Simulator struct {
	cfg    Config
	rules  life.Rules
	client dynamic.Interface
	cache  *cache
	queue  queue
}

// New checks the configuration, all faults together; it starts nothing.
func New(cfg Config) (*Simulator, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("simulator: %w", err)
	}
	unlimited := rest.CopyConfig(cfg.REST)
	unlimited.QPS = -1 // bounded by the workers
	unlimited.UserAgent = "glidepath-simulator"
	client, err := dynamic.NewForConfig(unlimited)
	if err != nil {
		return nil, fmt.Errorf("simulator: %w", err)
	}
	return newSimulator(cfg, client), nil
}

func newSimulator(cfg Config, client dynamic.Interface) *Simulator {
	cfg = cfg.withDefaults()
	s := &Simulator{
		cfg:    cfg,
		rules:  life.Rules{Seed: cfg.Seed, Catalog: life.SampleCatalog(), Pace: cfg.Pace},
		client: client,
		queue:  newQueue(cfg.Clock),
	}
	s.cache = newCache(client, cfg.Namespaces, s.queue, s.cfg.Logger)
	return s
}

// Run works until ctx ends and returns when all it started has ended: nil then, an error if it could not begin.
func (s *Simulator) Run(ctx context.Context) error {
	defer s.queue.ShutDown()
	if err := s.probe(ctx); err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	s.cache.start(ctx, group)
	group.Go(func() error {
		<-ctx.Done()
		s.queue.ShutDown()
		return nil
	})
	if !s.cache.wait(ctx) {
		return group.Wait() // the context ended meanwhile
	}
	if err := s.startPods(ctx, group); err != nil {
		s.cfg.Logger.Warn("pods of an earlier simulator could not be found; they stay", "error", err)
	}
	for range workers {
		group.Go(func() error { s.work(ctx); return nil })
	}
	if s.cfg.RunsInFlight > 0 {
		group.Go(func() error { s.create(ctx); return nil })
	}
	return group.Wait()
}

// startPods takes over the Pods there are and lets their logs grow.
func (s *Simulator) startPods(ctx context.Context, group *errgroup.Group) error {
	if s.cfg.Pods == nil {
		return nil
	}
	group.Go(func() error { s.cfg.Pods.Run(ctx); return nil })
	tasks, err := s.cfg.Pods.Adopt(ctx, s.cfg.Namespaces)
	for _, task := range tasks {
		s.queue.Add(key{kind: taskRun, namespace: task.Namespace, name: task.Name})
	}
	return err
}

// probe makes an API server that is away, or that does not know the kinds, an error at the start.
func (s *Simulator) probe(ctx context.Context) error {
	for _, resource := range []schema.GroupVersionResource{pipelineRuns(), taskRuns()} {
		_, err := s.client.Resource(resource).Namespace(s.cfg.Namespaces[0]).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return fmt.Errorf("list %s: %w", resource.Resource, err)
		}
	}
	return nil
}

func pipelineRuns() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"}
}

func taskRuns() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "taskruns"}
}
