// Package view owns the viewers of the bench: many who look at one app at once, each in one of three ways, and note when
// each change reached them. They run as a process of their own, so that what they cost is not counted as the gateway's.
package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Way is how a viewer learns of changes.
type Way string

// The ways.
const (
	// Stream is one answer of server-sent events.
	Stream Way = "stream"
	// Poll is a list again and again, in one request each.
	Poll Way = "poll"
	// Watch is a watch of each path at the API server.
	Watch Way = "watch"
)

// Annotation is that of a changed object: its value is the number of the change.
const Annotation = "bench.hangar.io/change"

// Spec says who looks at what. It holds a token, so it travels on standard input.
type Spec struct {
	Way Way
	// URLs are where to look; viewers take them in turns. Paths are what to look at; only a Watch has several.
	URLs, Paths []string
	Headers     map[string]string
	// Kubeconfig is how a Watch reaches the API server.
	Kubeconfig string
	Viewers    int
	// From is the number of the first change that counts, Changes how many there will be. Change n is of object n % Objects.
	From, Changes, Objects int
	// Every is how often a Poll asks.
	Every time.Duration
	// Grace is how long after the last change it may still reach somebody.
	Grace time.Duration
}

// Report is what the viewers saw.
type Report struct {
	// Begun is when each viewer last asked for its stream, Arrived when each change came to each viewer: by change, then by
	// viewer, and 0 for never. All are Unix times in nanoseconds.
	Begun   []int64
	Arrived [][]int64
	// Doubled counts changes that came to a viewer again.
	Doubled int
	// ID is the id of the last event that the first viewer of a Stream was sent.
	ID string
	// Failures are what went wrong before the end, by what it was.
	Failures map[string]int
}

// Err is an error that names the failures, and what is missing or came twice.
func (r Report) Err() error {
	var errs []error
	for _, what := range slices.Sorted(maps.Keys(r.Failures)) {
		errs = append(errs, fmt.Errorf("%d times %s", r.Failures[what], what))
	}
	missing := 0
	for _, of := range r.Arrived {
		for _, at := range of {
			if at == 0 {
				missing++
			}
		}
	}
	if missing > 0 {
		errs = append(errs, fmt.Errorf("%d changes did not arrive", missing))
	}
	if r.Doubled > 0 {
		errs = append(errs, fmt.Errorf("%d changes came twice", r.Doubled))
	}
	return errors.Join(errs...)
}

// Ready is what Main writes first: every viewer has been shown what there is.
type Ready struct {
	Failures map[string]int
}

// Main reads a Spec from in, writes Ready to out once all look, waits for the end of in, which says that there are no more
// changes, and writes the Report: the whole of the process.
func Main(ctx context.Context, in io.Reader, out io.Writer) error {
	var s Spec
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return fmt.Errorf("reading what to look at: %w", err)
	}
	c, err := newCrowd(s)
	if err != nil {
		return err
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var looking sync.WaitGroup
	for _, v := range c.viewers {
		looking.Go(func() { c.look(ctx, v) })
	}
	c.ready.Wait()
	if err := json.NewEncoder(out).Encode(Ready{Failures: c.failed()}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	grace := time.NewTimer(s.Grace)
	defer grace.Stop()
	select {
	case <-c.all:
	case <-grace.C:
	case <-ctx.Done():
	}
	c.over.Store(true)
	leave()
	looking.Wait()
	c.close()
	return json.NewEncoder(out).Encode(c.report())
}

// crowd is all viewers.
type crowd struct {
	spec    Spec
	client  *http.Client
	base    []string
	viewers []*viewer
	ready   sync.WaitGroup // viewers that have not been shown what there is
	opening chan struct{}  // has room for those who are about to be
	left    atomic.Int64   // changes that somebody has yet to see
	all     chan struct{}  // closed when there are none
	over    atomic.Bool    // what breaks now is no failure

	mu       sync.Mutex
	failures map[string]int
}

// openers is how many viewers come at once.
const openers = 64

func newCrowd(s Spec) (*crowd, error) {
	c := &crowd{spec: s, opening: make(chan struct{}, openers), all: make(chan struct{}), failures: map[string]int{}}
	if err := c.connect(); err != nil {
		return nil, err
	}
	for i := range s.Viewers {
		c.viewers = append(c.viewers, &viewer{crowd: c, base: c.base[i%len(c.base)], arrived: make([]atomic.Int64, s.Changes)})
	}
	c.ready.Add(s.Viewers)
	if c.left.Store(int64(s.Viewers) * int64(s.Changes)); c.left.Load() == 0 {
		close(c.all)
	}
	return c, nil
}

func (c *crowd) fail(err error) {
	if c.over.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures[err.Error()]++
}

func (c *crowd) failed() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.failures)
}

func (c *crowd) report() Report {
	r := Report{Arrived: make([][]int64, c.spec.Changes), Failures: c.failed()}
	for _, v := range c.viewers {
		r.Begun = append(r.Begun, v.begun)
		r.Doubled += int(v.doubled.Load())
		for n := range v.arrived {
			r.Arrived[n] = append(r.Arrived[n], v.arrived[n].Load())
		}
	}
	if len(c.viewers) > 0 {
		r.ID = c.viewers[0].id
	}
	return r
}
