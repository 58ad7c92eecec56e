// Package load owns the bench's load generator: as many connections as asked for, each with one request under way at a time,
// for a while. It runs as a process of its own on one thread, so that what it costs is the same whoever answers.
package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"hangar.io/glidepath/test/bench/figures"
)

const (
	callTimeout = 10 * time.Second
	// maxAnswer bounds a body, well above the 1 MB that the bench reads.
	maxAnswer = 16 << 20
)

// Spec says what to send. It holds a token, so it travels on standard input and never in arguments.
type Spec struct {
	Method string
	// Addr is host:port, Path the request's target.
	Addr, Path string
	Headers    map[string]string
	// Connections are used at once, each for one request after the other.
	Connections int
	// Duration is how long requests are begun, after one on every connection that does not count.
	Duration time.Duration
	// Status is that of every good answer.
	Status int
}

// Result is what became of a load.
type Result struct {
	// Sent are all requests, those that do not count included.
	Sent int
	// Answered are those that count and had a good answer, in Elapsed.
	Answered int
	Elapsed  time.Duration
	// Failures are answers of another status, and errors, by what they were.
	Failures map[string]int
	// P50 and P99 are of the good answers, in milliseconds.
	P50, P99 float64
	// CPU is what the process that generated the load has used, by whoever
	// started it.
	CPU time.Duration
}

// PerSecond is the rate of good answers.
func (r Result) PerSecond() float64 { return float64(r.Answered) / r.Elapsed.Seconds() }

// Err is an error that names the failures, if there are any: a rate that counts refusals measures something else.
func (r Result) Err() error {
	if len(r.Failures) == 0 {
		return nil
	}
	var errs []error
	for _, what := range slices.Sorted(maps.Keys(r.Failures)) {
		errs = append(errs, fmt.Errorf("%d times %s", r.Failures[what], what))
	}
	return fmt.Errorf("of %d requests: %w", r.Sent, errors.Join(errs...))
}

// Main reads a Spec from in, generates the load and writes the Result to out: the whole of the process.
func Main(ctx context.Context, in io.Reader, out io.Writer) error {
	var s Spec
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return fmt.Errorf("reading what to send: %w", err)
	}
	return json.NewEncoder(out).Encode(Run(ctx, s))
}

// Run generates the load in this process, until its time is over or ctx ends.
func Run(ctx context.Context, s Spec) Result {
	g := &generator{
		spec: s,
		client: &fasthttp.HostClient{
			Addr: s.Addr, MaxConns: s.Connections, NoDefaultUserAgentHeader: true, DisablePathNormalizing: true,
			MaxIdleConnDuration: time.Minute, ReadTimeout: callTimeout, WriteTimeout: callTimeout, MaxResponseBodySize: maxAnswer,
			ReadBufferSize: 64 << 10,
			// A request that failed is a failure: it is not sent again.
			RetryIfErr: func(*fasthttp.Request, int, error) (resetTimeout, retry bool) { return false, false },
		},
	}
	defer g.client.CloseIdleConnections()
	return g.run(ctx)
}

type generator struct {
	spec   Spec
	client *fasthttp.HostClient
}

// share is what one connection did.
type share struct {
	sent     int
	took     []float64 // milliseconds of the good answers
	failures map[string]int
}

func (g *generator) run(ctx context.Context) Result {
	shares := make([]share, g.spec.Connections)
	var warm, all sync.WaitGroup
	warm.Add(len(shares))
	for i := range shares {
		all.Go(func() { shares[i] = g.connection(ctx, &warm) })
	}
	warm.Wait()
	begun := time.Now()
	all.Wait()
	return sum(shares, time.Since(begun))
}

// connection sends one request after the other, the first to warm up together with all others.
func (g *generator) connection(ctx context.Context, warm *sync.WaitGroup) share {
	req, resp := g.request(), fasthttp.AcquireResponse()
	s := share{failures: map[string]int{}}
	_ = g.call(req, resp, &s)
	warm.Done()
	warm.Wait()
	for end := time.Now().Add(g.spec.Duration); ctx.Err() == nil; {
		begun := time.Now()
		if begun.After(end) {
			break
		}
		if g.call(req, resp, &s) {
			s.took = append(s.took, float64(time.Since(begun))/float64(time.Millisecond))
		}
	}
	return s
}

func (g *generator) request() *fasthttp.Request {
	req := fasthttp.AcquireRequest()
	req.Header.DisableNormalizing()
	req.Header.SetMethod(g.spec.Method)
	req.SetRequestURI(g.spec.Path)
	req.Header.SetHost(g.spec.Addr)
	for name, value := range g.spec.Headers {
		req.Header.Set(name, value)
	}
	return req
}

func (g *generator) call(req *fasthttp.Request, resp *fasthttp.Response, s *share) bool {
	s.sent++
	if err := g.client.Do(req, resp); err != nil {
		s.failures[err.Error()]++
		return false
	}
	if got := resp.StatusCode(); got != g.spec.Status {
		s.failures[fmt.Sprintf("status %d", got)]++
		return false
	}
	return true
}

func sum(shares []share, elapsed time.Duration) Result {
	r := Result{Elapsed: elapsed, Failures: map[string]int{}}
	var took []float64
	for _, s := range shares {
		r.Sent += s.sent
		took = append(took, s.took...)
		for what, n := range s.failures {
			r.Failures[what] += n
		}
	}
	slices.Sort(took)
	r.Answered = len(took)
	if len(took) > 0 {
		r.P50, r.P99 = figures.Percentile(took, 0.5), figures.Percentile(took, 0.99)
	}
	return r
}
