package simulator

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

type kind string

const (
	pipelineRun kind = "PipelineRun"
	taskRun     kind = "TaskRun"
)

// key names an object to look at.
type key struct {
	kind            kind
	namespace, name string
}

// queue holds what is to be looked at, each once however often it was added.
type queue = workqueue.TypedRateLimitingInterface[key]

// What failed is tried again soon at first, then ever later.
const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 5 * time.Second
)

func newQueue(clock clock.WithTicker) queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[key]{Clock: clock},
	)
}

// work looks at what is in the queue until it is shut down.
func (s *Simulator) work(ctx context.Context) {
	for {
		k, shutdown := s.queue.Get()
		if shutdown {
			return
		}
		s.look(ctx, k)
		s.queue.Done(k)
	}
}

// look moves one object and decides when to look at it again.
func (s *Simulator) look(ctx context.Context, k key) {
	next, err := s.move(ctx, k)
	switch {
	case ctx.Err() != nil:
		return
	case stale(err):
		s.cfg.Logger.Debug("object moved meanwhile, trying again", "kind", k.kind, "namespace", k.namespace, "name", k.name, "error", err)
		s.queue.AddRateLimited(k)
	case err != nil:
		s.cfg.Logger.Warn("moving a run failed, trying again", "kind", k.kind, "namespace", k.namespace, "name", k.name, "error", err)
		s.queue.AddRateLimited(k)
	default:
		s.queue.Forget(k)
		if !next.IsZero() {
			s.queue.AddAfter(k, next.Sub(s.cfg.Clock.Now()))
		}
	}
}

// errStale says that the decision was made on something that is no longer so.
var errStale = errors.New("out of date")

// stale tells what comes of the cache being behind from what is wrong.
func stale(err error) bool {
	return errors.Is(err, errStale) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

func (s *Simulator) move(ctx context.Context, k key) (next time.Time, err error) {
	object := s.cache.get(k)
	switch {
	case object == nil && k.kind == taskRun && s.cfg.Pods != nil:
		return time.Time{}, s.cfg.Pods.Forget(ctx, k.namespace, k.name)
	case object == nil || object.GetDeletionTimestamp() != nil:
		return time.Time{}, nil
	case k.kind == taskRun:
		return s.moveTaskRun(ctx, object)
	default:
		return s.movePipelineRun(ctx, object)
	}
}
