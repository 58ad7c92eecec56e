package decision_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/internal/problem"
)

func (w *world) capable(ctx context.Context, user, person, app string) (decision.Capable, error) {
	d := decision.New(decision.Config{Authenticator: w, Access: w, Namespaces: w, Delegates: []string{"tower"}})
	s := decision.Standing{Caller: w.callers[user+"-token"], Delegate: user == "tower", OnBehalfOf: person}
	return d.Capabilities(w.ops).Of(ctx, s, app)
}

// What whoami says of an operation is what a call of it then gets: for every
// operation, many sets of rights, and every kind of app and caller.
func TestACapabilityIsWhatTheCallThenGets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // the same each time
	namespaces := []string{"", "app-gate-api-cicd", "infra-postgres-cicd", "app-both-cicd", "infra-both-cicd", "app-missing-cicd"}
	rights := slices.Collect(maps.Values(contractRights))
	slices.Sort(rights)
	for round := range 40 {
		w := newWorld(t)
		for range random.IntN(60) {
			verb, resource, _ := strings.Cut(rights[random.IntN(len(rights))], " ")
			w.grant(verb, resource, namespaces[random.IntN(len(namespaces))])
		}
		for _, app := range []string{"gate-api", "postgres", "both", "missing"} {
			for _, who := range []struct{ user, person string }{{"reader", ""}, {"tower", ""}, {"tower", "ana"}} {
				t.Run(fmt.Sprintf("%d/%s/%s-%s", round, app, who.user, who.person), func(t *testing.T) {
					got, err := w.capable(t.Context(), who.user, who.person, app)
					if err != nil {
						t.Fatal(err)
					}
					w.comparesWithCalls(t, got, who.user, who.person, app)
				})
			}
		}
	}
}

func (w *world) comparesWithCalls(t *testing.T, got decision.Capable, user, person, app string) {
	t.Helper()
	if len(got.Operations) != len(api.Operations()) {
		t.Fatalf("%d operations", len(got.Operations))
	}
	namespace := ""
	for i, op := range api.Operations() {
		target := pathOf(op, app)
		if op.Scope == api.ScopeFleet {
			target += "?app=" + app
		}
		h := bearer(user + "-token")
		if person != "" {
			h[onBehalfOf] = person
		}
		d := w.decide(op.ID, target, h)
		if d.Allowed() && d.Namespace.Name != "" {
			namespace = d.Namespace.Name
		}
		one := got.Operations[i]
		if one.Operation.ID != op.ID {
			t.Fatalf("operation %d is %s", i, one.Operation.ID)
		}
		if (one.Refusal == nil) != d.Allowed() {
			t.Fatalf("%s: refusal %v, the call's is %v", op.ID, one.Refusal, d.Refusal)
		}
		if d.Refusal != nil && one.Refusal.Body("") != d.Refusal.Body("") {
			t.Errorf("%s: %+v, the call gets %+v", op.ID, one.Refusal.Body(""), d.Refusal.Body(""))
		}
	}
	if got.Namespace != namespace {
		t.Errorf("namespace %q, calls lead to %q", got.Namespace, namespace)
	}
}

func TestNobodyLearnsOfAnAppByAskingWhatTheyMay(t *testing.T) {
	say := func(app string) string {
		w := newWorld(t)
		w.grant("list", "runs", "app-another-cicd")
		got, err := w.capable(t.Context(), "reader", "", app)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		fmt.Fprintln(&out, got.Namespace)
		for _, one := range got.Operations {
			if one.Refusal == nil && one.Operation.Scope != api.ScopeSelf {
				t.Errorf("%s is allowed", one.Operation.ID)
			}
			if one.Refusal != nil {
				fmt.Fprintln(&out, one.Operation.ID, one.Refusal.Body(""))
			}
		}
		return strings.ReplaceAll(out.String(), app, "APP")
	}
	missing := say("missing")
	for _, app := range []string{"gate-api", "postgres", "both"} {
		if got := say(app); got != missing {
			t.Errorf("%s: %s\nmissing: %s", app, got, missing)
		}
	}
}

// Each right is asked about once, and always as for reads: what may be asked
// often must not take the slots of writes.
func TestABatchAsksAboutEachRightOnce(t *testing.T) {
	distinct := map[string]bool{}
	for _, r := range contractRights {
		if r != "" {
			distinct[r] = true
		}
	}
	for app, namespaces := range map[string]int{"gate-api": 1, "missing": 1, "both": 2} {
		w := newWorld(t)
		if _, err := w.capable(t.Context(), "reader", "", app); err != nil {
			t.Fatal(err)
		}
		seen := map[review.Right]bool{}
		for _, r := range w.asked {
			seen[r] = true
		}
		if len(w.asked) != len(distinct)*namespaces || len(seen) != len(w.asked) {
			t.Errorf("%s: %d reviews of %d rights, want %d", app, len(w.asked), len(seen), len(distinct)*namespaces)
		}
		if slices.Contains(w.purposes, authn.ForWrite) {
			t.Errorf("%s: asked as for a write", app)
		}
		if len(w.resolved) != 1 {
			t.Errorf("%s: resolved %d times", app, len(w.resolved))
		}
	}
}

func TestABatchWithoutAnAnswerIsAFailureAndNoGuess(t *testing.T) {
	for _, broken := range []string{"access", "access by surprise", "namespaces", "slow"} {
		t.Run(broken, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.broken = broken
				got, err := w.capable(t.Context(), "reader", "", "gate-api")
				if err == nil || problem.From(err).Rule.ID != "GP-API-502" || len(got.Operations) > 0 {
					t.Errorf("got %v, %v", got, err)
				}
			})
		})
	}
}

// Callers who ask at once share the few places of batches, and each gets its
// answer all the same.
func TestBatchesShareABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		inUse := &bounded{world: w, takes: time.Millisecond}
		d := decision.New(decision.Config{Authenticator: w, Access: inUse, Namespaces: w})
		errs := make(chan error)
		for i := range 20 {
			caller := *w.callers["reader-token"]
			caller.Username = fmt.Sprint("reader-", i)
			go func() {
				_, err := d.Capabilities(w.ops).Of(t.Context(), decision.Standing{Caller: &caller}, "gate-api")
				errs <- err
			}()
		}
		for range 20 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if inUse.most != 16 {
			t.Errorf("%d reviews were under way at once", inUse.most)
		}
	})
}

// One who asks without end, over many connections, waits by themselves.
func TestACallerWhoAsksWithoutEndKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		d := decision.New(decision.Config{Authenticator: w, Access: &bounded{world: w, takes: 50 * time.Millisecond}, Namespaces: w})
		can := d.Capabilities(w.ops)
		ctx, stop := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		for range 64 {
			flood.Go(func() {
				for ctx.Err() == nil {
					_, _ = can.Of(ctx, decision.Standing{Caller: w.callers["tower-token"]}, "gate-api")
				}
			})
		}
		time.Sleep(time.Second)
		start := time.Now()
		_, err := can.Of(ctx, decision.Standing{Caller: w.callers["reader-token"]}, "gate-api")
		if took := time.Since(start); err != nil || took > time.Second {
			t.Errorf("answered after %s: %v", took, err)
		}
		stop()
		flood.Wait()
	})
}

// bounded counts the reviews under way.
type bounded struct {
	*world
	takes     time.Duration
	now, most int
}

func (b *bounded) Allowed(ctx context.Context, c *authn.Caller, r review.Right, p authn.Purpose) (bool, error) {
	b.count(1)
	defer b.count(-1)
	<-time.After(b.takes)
	return b.world.Allowed(ctx, c, r, p)
}

func (b *bounded) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now += n
	b.most = max(b.most, b.now)
}
