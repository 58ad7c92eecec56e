package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/parts"
	"hangar.io/glidepath/test/bench/view"
)

// look is one run: viewers who look in one way at changes that come at a pace.
type look struct {
	way       view.Way
	viewers   int
	perSecond int
	d         time.Duration
}

// sight is what a run came to.
type sight struct {
	// took are the milliseconds from the moment when a change was sent to the API server until a viewer had it, made those
	// from when the API server said that it is made; of all changes and viewers, sorted.
	took, made []float64
	// cpu is what each kind of server used in microseconds a change, and all together under the empty name.
	cpu map[string]float64
	// perSecond is how many changes there were in fact, watches how many the API server had of the kind with the most.
	perSecond, watches float64
}

// pollEvery is how often who polls asks, as the command line did before there were streams.
const pollEvery = 6 * time.Second

// look runs viewers while changes come. A change that a stream or a watch did not bring, or brought twice, is an error.
func (l *lives) look(ctx context.Context, k look) (sight, error) {
	n := max(int(k.d.Seconds()*float64(k.perSecond)), len(l.objects))
	spec := l.spec(k.way, k.viewers, n)
	spec.Every, spec.Grace = pollEvery, 2*pollEvery
	viewers, err := parts.Look(ctx, spec)
	if err != nil {
		return sight{}, err
	}
	watches, errWatches := l.watches(ctx)
	before, errBefore := l.cpu()
	began := time.Now()
	changes, errChanges := l.change(ctx, n, time.Second/time.Duration(k.perSecond))
	elapsed := time.Since(began)
	if err := errors.Join(errWatches, errBefore, errChanges); err != nil {
		return sight{}, errors.Join(err, viewers.Leave())
	}
	report, err := viewers.End()
	if err != nil {
		return sight{}, fmt.Errorf("%d viewers by %s: %w", k.viewers, k.way, err)
	}
	after, err := l.cpu()
	if err != nil {
		return sight{}, err
	}
	s := sight{cpu: map[string]float64{}, perSecond: float64(n) / elapsed.Seconds(), watches: watches}
	for what := range after {
		each := float64((after[what] - before[what]).Microseconds()) / float64(n)
		s.cpu[what] += each
		s.cpu[""] += each
	}
	for i, w := range changes {
		for _, at := range report.Arrived[i] {
			s.took = append(s.took, milliseconds(time.Unix(0, at).Sub(w.sent)))
			s.made = append(s.made, max(milliseconds(time.Unix(0, at).Sub(w.made)), 0)) // a watch may be faster than the answer
		}
	}
	slices.Sort(s.took)
	slices.Sort(s.made)
	return s, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// cpu is what each kind of server has used so far.
func (l *lives) cpu() (map[string]time.Duration, error) {
	all := map[string]time.Duration{}
	for what, processes := range l.servers() {
		for _, p := range processes {
			used, err := cpuTime(p.PID())
			if err != nil {
				return nil, err
			}
			all[what] += used
		}
	}
	return all, nil
}

// watches is how many watches of single namespaces the API server has open, by its own count, of the kind that has the most.
func (l *lives) watches(ctx context.Context) (float64, error) {
	body, err := l.APIServer.Client.Discovery().RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return 0, fmt.Errorf("counting watches: %w", err)
	}
	defer func() { _ = body.Close() }()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(body)
	if err != nil {
		return 0, fmt.Errorf("counting watches: %w", err)
	}
	open := map[string]float64{}
	for _, m := range families["apiserver_longrunning_requests"].GetMetric() {
		labels := map[string]string{}
		for _, pair := range m.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if labels["verb"] == "WATCH" && labels["scope"] == "namespace" && (labels["resource"] == "pipelineruns" || labels["resource"] == "taskruns") {
			open[labels["resource"]] += m.GetGauge().GetValue()
		}
	}
	return max(open["pipelineruns"], open["taskruns"]), nil
}

// percentile of what several runs of one way took together.
func percentile(runs []sight, p float64, of func(sight) []float64) float64 {
	var all []float64
	for _, s := range runs {
		all = append(all, of(s)...)
	}
	slices.Sort(all)
	return figures.Percentile(all, p)
}
