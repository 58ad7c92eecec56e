package livehub

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/kubelist"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/renewal"
	"hangar.io/glidepath/internal/sse"
	"hangar.io/glidepath/services/livehub/feed"
)

// still is a cluster that holds nothing and grants no watch.
type still struct{ version int }

func (s *still) List(context.Context, feed.Kind) (*kubelist.List, error) {
	return kubelist.NewList(strconv.Itoa(s.version), nil, nil), nil
}

func (s *still) Read(ctx context.Context, kind feed.Kind) (*kubelist.List, error) {
	return s.List(ctx, kind)
}

func (s *still) ReadAt(ctx context.Context, kind feed.Kind, _ string, _ bool) (*kubelist.List, error) {
	return s.List(ctx, kind)
}

func (s *still) Latest(context.Context, feed.Kind) (string, error) {
	return strconv.Itoa(s.version), nil
}

func (s *still) Watch(ctx context.Context, _ feed.Kind, _ kubelist.WatchFrom) (feed.Watch, error) {
	return &stillWatch{first: true, version: strconv.Itoa(s.version), ctx: ctx}, nil
}

type stillWatch struct {
	first   bool
	version string
	ctx     context.Context //nolint:containedctx // that of the watch
}

func (w *stillWatch) Close() {}

func (w *stillWatch) Next() (kubelist.Event, error) {
	if w.first {
		w.first = false
		return kubelist.Event{Type: "BOOKMARK", Meta: kubelist.Meta{ResourceVersion: w.version}, InitialEventsEnd: true}, nil
	}
	<-w.ctx.Done()
	return kubelist.Event{}, w.ctx.Err()
}

// line is a viewer's end of a stream.
type line struct{ *httptest.ResponseRecorder }

func (line) SetReadDeadline(time.Time) error  { return nil }
func (line) SetWriteDeadline(time.Time) error { return nil }

// theatre is the streams of a replica on a still cluster.
type theatre struct {
	t *testing.T
	*streams
	reg *prometheus.Registry
}

func newTheatre(t *testing.T, most int) *theatre {
	t.Helper()
	return newTheatreOn(t, most, &still{version: 7})
}

func newTheatreOn(t *testing.T, most int, source feed.Source) *theatre {
	t.Helper()
	reg := prometheus.NewRegistry()
	open := func(s calls.Scope) *feed.Feed {
		return feed.New(feed.Config{NamespaceUID: s.UID, Source: source, PollEvery: maxAge})
	}
	s := newStreams(newFeeds(open, reg), most)
	s.keep = kept
	t.Cleanup(s.feeds.close)
	return &theatre{t: t, streams: s, reg: reg}
}

// view opens a stream of a namespace until ctx ends; what it gives waits for its
// end.
func (h *theatre) view(ctx context.Context, uid string) (end func() (line, error)) {
	h.t.Helper()
	l := line{httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodGet, "/v1/apps/shop/live/stream", nil).WithContext(ctx)
	r.SetPathValue("app", "shop")
	done := make(chan error, 1)
	go func() { done <- h.serve(l, r, calls.Scope{Namespace: "ns-" + uid, UID: uid}, "", time.Minute) }()
	return func() (line, error) { err := <-done; return l, err }
}

func (h *theatre) watches() float64 {
	h.t.Helper()
	n, err := testutil.GatherAndCount(h.reg, "glidepath_api_live_watches")
	if err != nil || n != 1 {
		h.t.Fatal(n, err)
	}
	families, err := h.reg.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

// What goes on after its handler is nothing that the server would save the
// process from.
func TestAStreamThatPanicsEndsAlone(t *testing.T) {
	ended := false
	alone(t.Context(), func() {
		defer func() { ended = true }()
		panic("a bug") //nolint:forbidigo // as a bug does
	})
	if !ended {
		t.Error("what it held was not given back")
	}
}

// rule: R422
func TestANamespaceIsFollowedWhileItHasViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTheatre(t, 10)
		expect := func(want float64) {
			t.Helper()
			synctest.Wait()
			if got := h.watches(); got != want {
				t.Errorf("%v namespaces are followed, want %v", got, want)
			}
		}
		expect(0)
		first, leaveFirst := context.WithCancel(t.Context())
		second, leaveSecond := context.WithCancel(t.Context())
		a, b, c := h.view(first, "a"), h.view(first, "b"), h.view(second, "b")
		expect(2)
		leaveFirst()
		_, _ = a()
		_, _ = b()
		time.Sleep(linger + time.Second)
		expect(1)
		leaveSecond()
		_, _ = c()
		expect(1) // for a while, for those who come back
		again, leaveAgain := context.WithCancel(t.Context())
		d := h.view(again, "b")
		time.Sleep(linger + time.Second)
		expect(1)
		leaveAgain()
		_, _ = d()
		time.Sleep(linger + time.Second)
		expect(0)
	})
}

// rule: R258
func TestOneStreamMoreThanAReplicaServesIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTheatre(t, 3)
		ctx, leave := context.WithCancel(t.Context())
		one, leaveOne := context.WithCancel(t.Context())
		open := []func() (line, error){h.view(one, "a"), h.view(ctx, "a"), h.view(ctx, "b")}
		synctest.Wait()
		_, err := h.view(ctx, "a")()
		p := problem.From(err)
		if p.Rule.ID != problem.Busy.ID || !strings.Contains(p.Hint, "poll GET /v1/apps/shop/live") {
			t.Errorf("the fourth is answered %v, hint %q", err, p.Hint)
		}
		leaveOne()
		if _, err := open[0](); err != nil {
			t.Error(err)
		}
		open = append(open, h.view(ctx, "a"))
		synctest.Wait()
		leave()
		for _, end := range open[1:] {
			if l, err := end(); err != nil || !strings.Contains(l.Body.String(), "event: snapshot\n") {
				t.Errorf("%v, %s", err, l.Body)
			}
		}
	})
}

func TestAReplicaThatEndsSendsItsViewersAwayOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTheatre(t, 100)
		ends, waits := make([]time.Time, 50), make([]time.Duration, 50)
		began := time.Now()
		done := make(chan struct{})
		for i := range ends {
			end := h.view(t.Context(), "a")
			go func() {
				l, err := end()
				ends[i] = time.Now()
				r := sse.NewReader(l.Body, 1<<20)
				first, err1 := r.Next()
				waits[i] = r.Retry()
				last, err2 := r.Next()
				if err != nil || err1 != nil || err2 != nil || first.Type != "snapshot" || last.Type != "end" ||
					string(last.Data) != `{"reason":"drain"}` || last.ID != first.ID || r.Retry() == 0 {
					t.Errorf("it got %s, %s", first.Data, last.Data)
				}
				done <- struct{}{}
			}()
		}
		synctest.Wait()
		h.drain()
		if _, err := h.view(t.Context(), "a")(); problem.From(err).Rule.ID != problem.Busy.ID {
			t.Errorf("a stream is opened while the replica ends: %v", err)
		}
		seconds := map[int]bool{}
		for range ends {
			<-done
		}
		for _, at := range ends {
			if at.Sub(began) > drainTime {
				t.Errorf("a stream ended after %s", at.Sub(began))
			}
			seconds[int(at.Sub(began)/time.Second)] = true
		}
		if len(seconds) < 3 {
			t.Errorf("they ended within the seconds %v", seconds)
		}
		// Who is broken off was told before when to come back, and everybody another time.
		slices.Sort(waits)
		if waits[0] < comeBack || waits[49] >= comeBack+comeBackSpread || len(slices.Compact(waits)) < 10 {
			t.Errorf("viewers are to come back after %v", waits)
		}
	})
}

// mute is a cluster that takes a watch and says nothing.
type mute struct{ *still }

func (m *mute) Watch(ctx context.Context, _ feed.Kind, _ kubelist.WatchFrom) (feed.Watch, error) {
	return &stillWatch{ctx: ctx}, nil
}

// Those who wait for a namespace to be read go to another replica at once.
func TestAReplicaThatEndsKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTheatreOn(t, 10, &mute{&still{version: 7}})
		began := time.Now()
		end := h.view(t.Context(), "a")
		synctest.Wait()
		h.drain()
		_, err := end()
		if d := time.Since(began); problem.From(err).Rule.ID != problem.Busy.ID || d > 0 {
			t.Errorf("after %s: %v", d, err)
		}
	})
}

func TestAStreamSaysWhyItEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		says  string
		retry bool
	}{
		"the viewer left":            {context.Canceled, "", false},
		"the line broke":             {errors.New("broken pipe"), "", false},
		"the replica ends":           {errDrain, `{"reason":"drain"}`, true},
		"the viewer fell behind":     {errLagged, `{"reason":"lagged"}`, false},
		"the right is gone":          {&renewal.EndError{Reason: renewal.Revoked, Rule: "GP-AUTHZ-001"}, `{"reason":"revoked"}`, false},
		"the token has ended":        {&renewal.EndError{Reason: renewal.Expired}, `{"reason":"expired"}`, false},
		"it was open for long":       {&renewal.EndError{Reason: renewal.Lifetime}, `{"reason":"lifetime"}`, true},
		"nobody could tell for long": {&renewal.EndError{Reason: renewal.Unrenewed}, `{"reason":"unrenewed"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			var all []byte
			for _, f := range lastFrames(tc.err, "id") {
				all = append(all, f...)
			}
			r := sse.NewReader(strings.NewReader(string(all)), 1<<10)
			var comments []string
			r.OnComment = func(text string) { comments = append(comments, text) }
			e, err := r.Next()
			if (tc.says == "") != (len(all) == 0) || string(e.Data) != tc.says || (err == nil && (e.Type != "end" || e.ID != "id")) || (r.Retry() > 0) != tc.retry {
				t.Errorf("it ends with %q", all)
			}
			if lagged := len(comments) == 1 && comments[0] == " lagged"; lagged != errors.Is(tc.err, errLagged) {
				t.Errorf("comments %q", comments)
			}
		})
	}
}
