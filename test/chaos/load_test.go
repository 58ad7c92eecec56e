package chaos_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hangar.io/glidepath/internal/problem"
)

const (
	// beat is how often each part is played at each edge.
	beat = 150 * time.Millisecond
	// hung is over every bound that the edge sets on a call here, by far.
	hung = 25 * time.Second
	// maxBody bounds what is read of an answer.
	maxBody = 8 << 20
	// unwritten is how long Envoy may keep a line to itself, by far.
	unwritten = 5 * time.Second
	// maxFaults bounds what is told of what went wrong.
	maxFaults = 20
)

// phase is a stretch of the load: one fault, or the calm between two.
type phase struct {
	name string
	// rules are what may be answered besides for want of a part.
	rules []string
	// cuts says that answers which have begun may be cut.
	cuts bool
	// dark is the edge whose Envoy is gone, so that its calls may fail in any way; -1 for none.
	dark int
	// shows is where the absence of a part may show.
	shows where
	seen  map[seen]int
}

// seen is what came of calls at an edge: served, refused, broken, or the rule of a part that is away, and what is counted
// besides; of all calls, and after its name of one part.
type seen struct {
	edge int
	what string
}

const (
	served  = "served"
	refused = "refused"
	broken  = "broken"
)

// performance is one call of the load.
type performance struct {
	part  *part
	edge  int
	id    string // of its trace
	began time.Time
	ended time.Time
	// status is 0 when there was no answer.
	status int
	rule   string
	err    error
	// excused says that the Envoy was gone during some of the call, or just after.
	excused bool
}

// load plays its parts at every edge until stop.
type load struct {
	urls   []string
	cast   []*part
	client *http.Client
	ended  sync.WaitGroup
	cancel context.CancelFunc

	mu      sync.Mutex
	current *phase
	calls   map[string]*performance // by trace
	faults  []string
}

// start plays each part of the cast at every edge, and those who leave in turn.
func (l *load) start(t *testing.T, urls []string, cast []*part, leaving func() []*part) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	l.urls, l.cast, l.cancel, l.calls = urls, cast, cancel, map[string]*performance{}
	l.client = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}, Timeout: 2 * hung}
	l.enter(&phase{name: "at first", dark: -1})
	for edge := range urls {
		for _, p := range cast {
			l.play(ctx, edge, func() []*part { return []*part{p} })
		}
		l.play(ctx, edge, leaving)
	}
	t.Cleanup(l.stop)
}

// play has parts played in turn at an edge, one after another.
func (l *load) play(ctx context.Context, edge int, parts func() []*part) {
	l.ended.Go(func() {
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for turn := 0; ; turn++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if all := parts(); len(all) > 0 {
				l.perform(edge, all[turn%len(all)])
			}
		}
	})
}

// stop lets the calls under way end.
func (l *load) stop() {
	l.cancel()
	l.ended.Wait()
	l.client.CloseIdleConnections()
}

// enter begins a phase. Calls belong to the one that they begin in. An Envoy that is killed takes the lines of its last calls
// along.
func (l *load) enter(p *phase) *phase {
	p.seen = map[seen]int{}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = p
	for _, v := range l.calls {
		if v.edge == p.dark && time.Since(v.ended) < unwritten {
			v.excused = true
		}
	}
	return p
}

// then begins a phase in which what is excused now still is.
func (l *load) then(name string) *phase {
	now := l.now()
	return l.enter(&phase{name: name, rules: now.rules, cuts: now.cuts, dark: now.dark, shows: now.shows})
}

func (l *load) now() *phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// count says how often something was seen of the calls that began in the phase, at one edge or, with -1, at all.
func (l *load) count(p *phase, edge int, what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if edge >= 0 {
		return p.seen[seen{edge, what}]
	}
	total := 0
	for at := range l.urls {
		total += p.seen[seen{at, what}]
	}
	return total
}

// summary says what came of the calls of a phase.
func (l *load) summary(p *phase) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var words []string
	for s, n := range p.seen {
		if !strings.Contains(s.what, ": ") {
			words = append(words, fmt.Sprintf("edge %d %s %d", s.edge+1, s.what, n))
		}
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// perform makes one call and judges what came of it.
func (l *load) perform(edge int, p *part) *performance {
	id := traceID()
	l.mu.Lock()
	begun := l.current
	v := &performance{part: p, edge: edge, id: id, began: time.Now()}
	l.calls[id] = v
	l.mu.Unlock()

	status, header, body, err := l.send(edge, p, id)

	l.mu.Lock()
	defer l.mu.Unlock()
	v.ended, v.status, v.err = time.Now(), status, err
	v.excused = begun.dark == edge || l.current.dark == edge
	what, fault := l.judge(v, begun, header, body)
	l.tally(v, begun, what)
	if fault != "" && len(l.faults) < maxFaults {
		l.faults = append(l.faults, fmt.Sprintf("%s, edge %d, %s: %s (trace %s, began %s, took %s)",
			begun.name, edge+1, p.name, fault, id, v.began.Format(time.RFC3339Nano), v.ended.Sub(v.began)))
	}
	return v
}

func (l *load) send(edge int, p *part, id string) (int, http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), p.method, l.urls[edge]+p.path+"?call="+id, http.NoBody)
	if err != nil {
		return 0, nil, nil, err
	}
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	req.Header.Set("Traceparent", "00-"+id+"-"+id[:16]+"-00")
	res, err := l.client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	return res.StatusCode, res.Header, body, err
}

// servedTo says whether a part was served at every edge.
func (l *load) servedTo(p *part) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := map[int]bool{}
	for _, v := range l.calls {
		if v.part == p && v.status == http.StatusOK {
			at[v.edge] = true
		}
	}
	return len(at) == len(l.urls)
}

// refusedAfter says whether a part was refused at every edge in a call that was no longer due.
func (l *load) refusedAfter(p *part) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := map[int]bool{}
	for _, v := range l.calls {
		if v.part == p && v.rule == p.refusals[0] && !p.due(v.began) {
			at[v.edge] = true
		}
	}
	return len(at) == len(l.urls)
}

// check fails the test for everything that went wrong since the last time.
func (l *load) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fault := range l.faults {
		t.Error(fault)
	}
	l.faults = nil
}

// fault notes what went wrong elsewhere than at the caller.
func (l *load) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, l.current.name+": "+fmt.Sprintf(format, args...))
	}
}

// traceID gives an id that no other call has.
func traceID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// known finds a rule of the error table.
func known(id string) (problem.Rule, error) {
	for _, r := range problem.All() {
		if r.ID == id {
			return r, nil
		}
	}
	return problem.Rule{}, errors.New("the rule is not in the table")
}
