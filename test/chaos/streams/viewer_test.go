package streams_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"hangar.io/glidepath/internal/sse"
)

// habit is how a viewer behaves.
type habit int

const (
	// stays: until its stream ends.
	stays habit = iota
	// restless: it leaves now and then, and comes back where it was.
	restless
	// forgetful: it leaves now and then, and begins anew.
	forgetful
	// drowsy: it takes nothing while it is told to sleep.
	drowsy
)

const (
	// silent is how long a stream may be silent, which brings a comment every 15 s, until a viewer gives it up.
	silent = 40 * time.Second
	// mostEvent bounds an event.
	mostEvent = 64 << 20
)

// viewer looks at the live stream of an app and folds it into a state. It comes back wherever its stream ends.
type viewer struct {
	name  string
	habit habit
	app   string
	token string
	urls  []string // of edges
	rand  *rand.Rand
	http  *http.Client

	mu    sync.Mutex
	state state
	// base is where moves begins: what was known for sure there.
	base  position
	moves []move
	// awake is closed when it may take what is there.
	awake chan struct{}
	// avoid is the edge that it does not go to; -1 for none.
	edge   int // where it is
	tag    string
	lastID string
	faults []string
	counts counts
}

func newViewer(name string, h habit, app, token string, urls []string, seed uint64) *viewer {
	v := &viewer{name: name, habit: h, app: app, token: token, urls: urls, rand: rand.New(rand.NewPCG(seed, 1)), state: state{}}
	v.awake = make(chan struct{})
	close(v.awake)
	v.counts = counts{resets: map[string]int{}, ends: map[string]int{}}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	if h == drowsy {
		dialer.Control = narrow
	}
	v.http = &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableCompression: true, ResponseHeaderTimeout: 20 * time.Second}}
	return v
}

// narrow has the kernel hold little for who does not read.
func narrow(_, _ string, c syscall.RawConn) (err error) {
	fault := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 16<<10) })
	return errors.Join(fault, err)
}

// look looks until ctx ends.
func (v *viewer) look(ctx context.Context) {
	defer v.http.CloseIdleConnections()
	for failures := 0; ctx.Err() == nil; {
		opened, retry := v.connection(ctx)
		if failures++; opened {
			failures = 0
		}
		if retry == 0 {
			retry = min(50*time.Millisecond<<failures, time.Second)
		}
		wait := time.NewTimer(retry)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// connection is one stream, to its end. It gives whether there was one, and how long the viewer is to wait.
func (v *viewer) connection(ctx context.Context) (opened bool, retry time.Duration) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	resp, err := v.open(ctx)
	if err != nil {
		return false, 0
	}
	defer func() { _ = resp.Body.Close() }()
	late := time.AfterFunc(silent, leave)
	defer late.Stop()
	r := sse.NewReader(resp.Body, mostEvent)
	r.OnComment = func(string) { late.Reset(silent) }
	one := connection{viewer: v, resumed: resp.Request.Header.Get("Last-Event-ID") != "", brought: map[key]string{}}
	stay := v.stay()
	for n := 0; n < stay; n++ {
		if !v.wakes(ctx, late) {
			return true, 0
		}
		e, err := r.Next()
		v.mu.Lock()
		if r.LastID() != "" {
			one.moved(r.LastID())
		}
		if err == nil {
			one.take(e)
		}
		ended := one.ended
		if err != nil && ctx.Err() == nil && !ended {
			v.counts.broken++
		}
		v.mu.Unlock()
		if err != nil || ended {
			return true, r.Retry()
		}
		late.Reset(silent)
	}
	v.leaves()
	return true, 0
}

// open asks for the stream, from where the viewer was if it was anywhere.
func (v *viewer) open(ctx context.Context) (*http.Response, error) {
	v.mu.Lock()
	v.edge = v.rand.IntN(len(v.urls))
	url, id := v.urls[v.edge]+"/v1/apps/"+v.app+"/live/stream", v.lastID
	v.mu.Unlock()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+v.token)
	if id != "" {
		r.Header.Set("Last-Event-ID", id)
	}
	resp, err := v.http.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		v.mu.Lock()
		v.counts.connects++
		v.mu.Unlock()
		return resp, nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // for a message alone
	_ = resp.Body.Close()
	if resp.StatusCode < 500 {
		v.fault("it is answered %d: %s", resp.StatusCode, text)
	}
	return nil, fmt.Errorf("answered %d: %s", resp.StatusCode, text)
}

// stay is how many events the viewer stays for.
func (v *viewer) stay() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.habit == restless || v.habit == forgetful {
		return 5 + v.rand.IntN(100)
	}
	return 1 << 40
}

func (v *viewer) leaves() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.habit == forgetful {
		v.lastID, v.tag = "", ""
	}
}

// wakes waits until the viewer is awake, which counts as no silence of its stream.
func (v *viewer) wakes(ctx context.Context, late *time.Timer) bool {
	v.mu.Lock()
	awake := v.awake
	v.mu.Unlock()
	select {
	case <-awake:
		return true
	default:
	}
	late.Stop()
	select {
	case <-awake:
		late.Reset(silent)
		return true
	case <-ctx.Done():
		return false
	}
}

// sleep has the viewer take nothing until wake is called.
func (v *viewer) sleep() (wake func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.awake = make(chan struct{})
	return sync.OnceFunc(func() { close(v.awake) })
}

func (v *viewer) fault(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wrong(format, args...)
}

// wrong notes a promise that was broken. It is called with the lock held.
func (v *viewer) wrong(format string, args ...any) {
	const most = 5
	if len(v.faults) < most {
		v.faults = append(v.faults, fmt.Sprintf(format, args...))
	}
}

// connection is what is known of one stream.
type connection struct {
	*viewer

	resumed bool
	events  int
	at      position
	reset   bool // a snapshot is due
	ended   bool
	// brought is what this stream has said of objects: the version, or "" for one that it said is gone.
	brought map[key]string
}

// moved takes an id. Those of one stream never go back, but for a reset.
func (c *connection) moved(id string) {
	if id == c.lastID {
		return
	}
	tag, at, err := parseID(id)
	switch {
	case err != nil:
		c.wrong("%v", err)
	case c.tag != "" && tag != c.tag:
		c.wrong("the namespace was %s and is %s", c.tag, tag)
	case at == position{}: // a reset's: nothing was seen
	case at[0] < c.at[0] || at[1] < c.at[1]:
		c.wrong("it was at %v and is at %v", c.at, at)
	}
	c.tag, c.at, c.lastID = tag, at, id
}

// take takes an event.
func (c *connection) take(e sse.Event) {
	first := c.events == 0
	c.events++
	m, err := c.state.fold(e)
	if err != nil {
		c.wrong("at %s, event %d: %v", c.lastID, c.events, err)
	}
	switch e.Type {
	case "reset":
		c.reset = true
		c.counts.resets[reason(e)]++
	case "snapshot":
		if !c.reset && (c.resumed || !first) {
			c.wrong("at %s, event %d: everything anew without a word", c.lastID, c.events)
		}
		c.reset = false
		c.counts.snapshots++
		c.base, c.moves = c.at, nil
		c.brought = map[key]string{}
		for k, v := range c.state {
			c.brought[k] = v.number
		}
	case "change":
		if c.reset || (first && !c.resumed) {
			c.wrong("at %s, event %d: a change where a snapshot is due", c.lastID, c.events)
		}
		c.counts.changes++
		c.moves = append(c.moves, m)
		// What it has of an earlier stream it may get again, where that one broke in the middle of what a list brought.
		if known, of := c.brought[m.key]; of {
			if err := m.follows(known); err != nil {
				c.wrong("at %s, event %d of a stream that was resumed %t: %v", c.lastID, c.events, c.resumed, err)
			}
		}
		c.brought[m.key] = m.version
	case "end":
		c.ended = true
		c.counts.ends[reason(e)]++
	}
}

func reason(e sse.Event) string {
	return strings.TrimSuffix(strings.TrimPrefix(string(e.Data), `{"reason":"`), `"}`)
}
