package renewal_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/renewal"
	"hangar.io/glidepath/internal/streamquota"
)

func TestAStreamIsRenewedWithTheTicketOfTheLastRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		ctx, release := w.open("a", nil)
		time.Sleep(3 * time.Minute)
		release()
		shown := w.tickets()
		if len(shown) < 6 || len(shown) > 10 {
			t.Errorf("%d renewals in 3 minutes", len(shown))
		}
		last := shown[0].at // the first comes with the first epoch, a little after the stream began
		for i, s := range shown[1:] {
			if s.ticket != "a"+strings.Repeat("+", i+1) {
				t.Errorf("renewal %d shows %s", i, s.ticket)
			}
			if s.at-last > renewal.Every {
				t.Errorf("%s from one renewal to the next", s.at-last)
			}
			last = s.at
		}
		if _, ok := renewal.EndOf(ctx); ok || ctx.Err() == nil {
			t.Error("a released stream is not simply over")
		}
		if w.keeper.Open() != 0 {
			t.Error("it is still kept")
		}
	})
}

func TestAnAnswerEndsAStreamOrDoesNot(t *testing.T) {
	other := func(change func(*identity.Claims)) func(*world) renewal.Answer {
		return func(w *world) renewal.Answer { return renewal.Answer{Identity: w.sign(change)} }
	}
	plain := func(a renewal.Answer) func(*world) renewal.Answer {
		return func(*world) renewal.Answer { return a }
	}
	for name, tc := range map[string]struct {
		answer func(*world) renewal.Answer
		reason renewal.Reason // of the end
		most   time.Duration  // until it ends
	}{
		"refused as revoked":             {plain(renewal.Answer{Reason: renewal.Revoked, Rule: "GP-AUTHZ-001"}), renewal.Revoked, renewal.Every},
		"refused as expired":             {plain(renewal.Answer{Reason: renewal.Expired, Rule: "GP-AUTH-002"}), renewal.Expired, renewal.Every},
		"refused for its lifetime":       {plain(renewal.Answer{Reason: renewal.Lifetime}), renewal.Lifetime, renewal.Every},
		"refused for an unknown reason":  {plain(renewal.Answer{Reason: "moon"}), renewal.Revoked, renewal.Every},
		"no verdict":                     {plain(renewal.Answer{Rule: "GP-API-502"}), renewal.Unrenewed, renewal.Grace},
		"no identity at all":             {plain(renewal.Answer{Ticket: "b"}), renewal.Unrenewed, renewal.Grace},
		"an identity that nobody signed": {plain(renewal.Answer{Identity: "x.y.z"}), renewal.Unrenewed, renewal.Grace},
		"another caller's identity":      {other(func(c *identity.Claims) { c.Subject = "x" }), renewal.Unrenewed, renewal.Grace},
		"another person's":               {other(func(c *identity.Claims) { c.OnBehalfOf = "x" }), renewal.Unrenewed, renewal.Grace},
		"another operation's":            {other(func(c *identity.Claims) { c.Op = "streamEvents" }), renewal.Unrenewed, renewal.Grace},
		"another app's":                  {other(func(c *identity.Claims) { c.App = "x" }), renewal.Unrenewed, renewal.Grace},
		"another namespace's":            {other(func(c *identity.Claims) { c.Namespace = "x" }), renewal.Unrenewed, renewal.Grace},
		"one of the namespace made anew": {other(func(c *identity.Claims) { c.NamespaceUID = "uid-2" }), renewal.Unrenewed, renewal.Grace},
		"another backend's":              {other(func(c *identity.Claims) { c.Audience = []string{"runs"} }), renewal.Unrenewed, renewal.Grace},
		"an old one": {other(func(c *identity.Claims) {
			c.IssuedAt, c.ExpiresAt = identity.Times(time.Now().Add(-2*time.Minute), time.Minute)
		}), renewal.Unrenewed, renewal.Grace},
		"both an identity and a refusal": {func(w *world) renewal.Answer {
			return renewal.Answer{Identity: w.sign(nil), Reason: renewal.Revoked}
		}, renewal.Unrenewed, renewal.Grace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.stop()
				time.Sleep(10 * time.Second) // the first epoch is known
				a := tc.answer
				w.set(func() { w.answer = func(string) renewal.Answer { return a(w) } })
				opened := time.Since(start)
				ctx, release := w.open("a", nil)
				defer release()
				at, reason := lasts(ctx)
				if reason != tc.reason || at-opened > tc.most || at-opened < renewal.Every/2 {
					t.Errorf("%s after %s", reason, at-opened)
				}
			})
		})
	}
}

func TestAStreamEndsWithItsCallersToken(t *testing.T) {
	for name, tc := range map[string]struct{ opened, renewed, want time.Duration }{
		"as it was told when it was opened": {10 * time.Second, time.Hour, 10 * time.Second},
		"as a renewal tells":                {time.Hour, 50 * time.Second, 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.stop()
				time.Sleep(10 * time.Second)
				began := time.Now()
				expires := func(after time.Duration) func(*identity.Claims) {
					_, at := identity.Times(began, after)
					return func(c *identity.Claims) { c.TokenExpiry = at }
				}
				w.set(func() {
					w.answer = func(string) renewal.Answer { return renewal.Answer{Identity: w.sign(expires(tc.renewed))} }
				})
				ctx, release := w.open("a", expires(tc.opened))
				defer release()
				_, reason := lasts(ctx)
				// Identities have whole seconds.
				if got := time.Since(began); reason != renewal.Expired || got < tc.want-time.Second || got > tc.want+time.Second {
					t.Errorf("%s after %s", reason, got)
				}
			})
		})
	}
}

func TestAnAuthzThatIsAwayEndsStreamsOnlyAfterAWhileAndNotAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		const n = 100
		var streams []context.Context
		for i := range n {
			ctx, release := w.open(fmt.Sprint(i), nil)
			defer release()
			streams = append(streams, ctx)
		}
		time.Sleep(5 * time.Minute)
		w.set(func() { w.away = true; clear(w.hosts) })
		time.Sleep(renewal.Grace - renewal.Every - time.Second)
		for _, ctx := range streams {
			if ctx.Err() != nil {
				t.Fatal("a stream ended in a short outage")
			}
		}
		gone := time.Now()
		var mu sync.Mutex
		ends := map[time.Duration]int{}
		for _, ctx := range streams {
			context.AfterFunc(ctx, func() {
				mu.Lock()
				defer mu.Unlock()
				ends[time.Since(gone).Truncate(time.Second)]++
			})
		}
		for _, ctx := range streams {
			if _, reason := lasts(ctx); reason != renewal.Unrenewed {
				t.Fatalf("it is %s", reason)
			}
		}
		synctest.Wait()
		if time.Since(gone) > renewal.Grace {
			t.Errorf("the last one ended %s after the outage", time.Since(gone))
		}
		if len(ends) < 5 {
			t.Errorf("they ended at %v", ends)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.hosts["one"] == 0 || w.hosts["two"] == 0 {
			t.Errorf("asked %v", w.hosts)
		}
		// One try in half a second, at each of the two, for as long as there are streams.
		if tried := w.hosts["one"] + w.hosts["two"]; tried > 4*int(renewal.Grace/time.Second+10) {
			t.Errorf("%d requests, most of them in vain", tried)
		}
	})
}

func TestAnAuthzThatComesBackIsNotStormed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		var streams []context.Context
		for i := range 600 {
			ctx, release := w.open(fmt.Sprint(i), nil)
			defer release()
			streams = append(streams, ctx)
		}
		time.Sleep(time.Minute)
		w.set(func() { w.away = true })
		time.Sleep(8 * time.Second)
		w.set(func() { w.away, w.sizes, w.most, w.hold = false, nil, 0, 100*time.Millisecond })
		time.Sleep(2 * time.Minute)
		for _, ctx := range streams {
			if ctx.Err() != nil {
				t.Fatalf("a stream has ended: %v", context.Cause(ctx))
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, size := range w.sizes {
			if size > renewal.MaxBatch {
				t.Errorf("a batch of %d", size)
			}
		}
		if w.most > 4 {
			t.Errorf("%d requests at once", w.most)
		}
	})
}

// Behind one address each authz has the list that has come to it.
func TestListsThatDifferMakeNoStormOfRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		_, release := w.open("a", nil)
		defer release()
		w.set(func() { w.flips, w.sizes = true, nil })
		time.Sleep(10 * time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		// Without such lists it would be one in 20 to 30 seconds.
		if n := len(w.sizes); n < 20 || n > 60 {
			t.Errorf("the stream was renewed %d times", n)
		}
	})
}

func TestAChangeOfTheEpochRenewsEveryStreamAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		time.Sleep(10 * time.Second)
		var streams []context.Context
		for i := range 200 {
			ctx, release := w.open(fmt.Sprint(i), nil)
			defer release()
			streams = append(streams, ctx)
		}
		time.Sleep(time.Second)
		w.set(func() {
			w.answer = func(string) renewal.Answer {
				return renewal.Answer{Reason: renewal.Revoked, Rule: "GP-AUTH-006"}
			}
		})
		w.turn()
		changed := time.Now()
		for _, ctx := range streams {
			_, _ = lasts(ctx)
			if end, ok := renewal.EndOf(ctx); !ok || end.Rule != "GP-AUTH-006" || !strings.Contains(end.Error(), "revoked") {
				t.Fatalf("it ended by %v", context.Cause(ctx))
			}
		}
		if took := time.Since(changed); took > 3*time.Second || took < time.Second {
			t.Errorf("all have ended after %s", took)
		}
	})
}

func TestARenewalThatWasUnderWayAtAChangeOfTheEpochDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		time.Sleep(10 * time.Second)
		w.set(func() { w.hold = 4 * time.Second })
		ctx, release := w.open("a", nil)
		defer release()
		for len(w.tickets()) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		w.set(func() { w.answer = func(string) renewal.Answer { return renewal.Answer{Reason: renewal.Revoked} } })
		w.turn()
		changed := time.Now()
		if _, reason := lasts(ctx); reason != renewal.Revoked || time.Since(changed) > 11*time.Second {
			t.Errorf("%s after %s", reason, time.Since(changed))
		}
	})
}

func TestACallThatLeavesEndsItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		leave, left := context.WithCancel(t.Context())
		c := claims()
		r := call("a", c)
		ctx, release, err := w.keeper.Keep(r.WithContext(identity.NewContext(leave, &c)))
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if r.Header.Get(renewal.Header) != "" {
			t.Error("the ticket stays in the request")
		}
		left()
		if _, reason := lasts(ctx); reason != "" {
			t.Errorf("it is %s", reason)
		}
	})
}

func TestWhatIsNoStreamOfTheEdgeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		twice := call("a", claims())
		twice.Header.Add(renewal.Header, "b")
		nobody := httptest.NewRequest("GET", "/", nil)
		nobody.Header.Set(renewal.Header, "a")
		for name, r := range map[string]error{
			"without a ticket":      keepError(w, call("", claims())),
			"with two":              keepError(w, twice),
			"with a far too large":  keepError(w, call(strings.Repeat("a", renewal.MaxTicketBytes+1), claims())),
			"without any identity":  keepError(w, nobody),
			"with a ticket and all": keepError(w, call("a", claims())),
		} {
			want := "GP-EDGE-401"
			if name == "with a ticket and all" {
				want = ""
			}
			got := ""
			if r != nil {
				got = problem.From(r).Rule.ID
			}
			if got != want {
				t.Errorf("%s: %q", name, got)
			}
		}
	})
}

func TestAPersonsStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		ana := func(c *identity.Claims) { c.OnBehalfOf = "ana" }
		_, first := w.open("a", ana)
		_, second := w.open("b", ana)
		defer second()
		c := claims()
		c.OnBehalfOf = "ana"
		if err := keepError(w, call("c", c)); err == nil || problem.From(err).Status() != 429 {
			t.Errorf("the third: %v", err)
		}
		first()
		_, third := w.open("c", ana)
		third()
	})
}

func TestWithoutAnyAuthzEveryStreamIsRefused(t *testing.T) {
	k, err := renewal.New(renewal.Config{Quota: streamquota.New(streamquota.Limits{Caller: 1, Person: 1}), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	k.Run(t.Context()) // does nothing
	if _, _, err := k.Keep(call("a", claims())); err == nil || problem.From(err).Rule.ID != "GP-API-503" {
		t.Errorf("got %v", err)
	}
}

func keepError(w *world, r *http.Request) error {
	_, release, err := w.keeper.Keep(r)
	if err == nil {
		release()
	}
	return err
}
