package review_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/authz/apifake"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/review"
)

// slowFor has the API server take d for tokens that start with prefix.
func (p *parts) slowFor(prefix string, d time.Duration) {
	p.slow(d, func(r *http.Request) bool {
		if r.URL.Path != apifake.TokenReviews {
			return false
		}
		token, err := apifake.ReviewedToken(r)
		return err == nil && strings.HasPrefix(token, prefix)
	})
}

// Each of these floods takes every slot of its own kind. Whoever is of another
// kind must not wait for it.
func TestOneKindOfQuestionCannotTakeTheSlotsOfAnother(t *testing.T) {
	const bad, good = "bad", "slow-good"
	for name, tc := range map[string]struct {
		flood   string
		purpose authn.Purpose
		waits   string
	}{
		"made-up tokens on reads":          {bad, authn.ForRead, "new reader"},
		"made-up tokens on writes":         {bad, authn.ForWrite, "new writer"},
		"tokens known here on slow reads":  {good, authn.ForRead, "reader"},
		"tokens known here on slow writes": {good, authn.ForWrite, "writer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, limits(review.Limits{UnknownRead: 2, UnknownWrite: 2, Read: 2, Write: 2, Waiting: 10}))
				for n := range 8 {
					known := fmt.Sprintf("%s-%d", good, n)
					p.api.AcceptUser(known, "u")
					p.authenticate(t.Context(), known, authn.ForRead)
				}
				for _, token := range []string{"known", "new-1", "new-2"} {
					p.api.AcceptUser(token, "u")
				}
				p.authenticate(t.Context(), "known", authn.ForRead)
				p.api.AcceptUser("only-writes", "u")
				p.authenticate(t.Context(), "only-writes", authn.ForWrite)
				time.Sleep(review.AcceptedTTL)
				p.slowFor(tc.flood, 100*time.Millisecond)
				var wg sync.WaitGroup
				for n := range 8 {
					wg.Go(func() { p.authenticate(t.Context(), fmt.Sprintf("%s-%d", tc.flood, n), tc.purpose) })
				}
				synctest.Wait()
				for who, ask := range map[string]struct {
					token   string
					purpose authn.Purpose
				}{
					"new reader": {"new-1", authn.ForRead}, "new writer": {"new-2", authn.ForWrite},
					"reader": {"known", authn.ForRead}, "writer": {"known", authn.ForWrite},
					"writer that never reads": {"only-writes", authn.ForWrite},
				} {
					began := time.Now()
					wg.Go(func() {
						if got := p.authenticate(t.Context(), ask.token, ask.purpose); got != "u" {
							t.Errorf("%s: %s", who, got)
						}
						if waited := time.Since(began) > 0; waited != strings.HasPrefix(who, tc.waits) {
							t.Errorf("%s: waited %v", who, waited)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

func TestWaitingForASlotEndsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, limits(review.Limits{UnknownRead: 1, UnknownWrite: 1, Read: 1, Write: 1, Waiting: 10}))
		p.slow(time.Hour, nil)
		var wg sync.WaitGroup
		wg.Go(func() { p.authenticate(t.Context(), "first", authn.ForWrite) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if got := p.authenticate(ctx, "second", authn.ForWrite); got != "GP-API-502" || time.Since(began) != time.Second {
			t.Errorf("%s after %s", got, time.Since(began))
		}
		p.api.Fail(nil)
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		// The first still holds the only slot.
		if got := p.authenticate(ctx, "third", authn.ForWrite); got != "GP-API-502" {
			t.Errorf("the slot was taken twice: %s", got)
		}
		wg.Wait()
	})
}

func TestWhatWaitsIsBoundedAndTheRestIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, limits(review.Limits{UnknownRead: 1, UnknownWrite: 1, Read: 1, Write: 1, Waiting: 3}))
		p.slow(review.FillTimeout/2, nil)
		var wg sync.WaitGroup
		var mu sync.Mutex
		atOnce := 0
		began := time.Now()
		for n := range 20 {
			wg.Go(func() {
				got := p.authenticate(t.Context(), fmt.Sprintf("bad-%d", n), authn.ForRead)
				if got == "GP-API-502" && time.Since(began) == 0 {
					mu.Lock()
					atOnce++
					mu.Unlock()
				}
			})
		}
		synctest.Wait()
		if got := p.count(t, "glidepath_authz_reviews_waiting", map[string]string{"class": "unknown_read"}); got != 3 {
			t.Errorf("%v wait", got)
		}
		if got := p.count(t, "glidepath_authz_review_slots_in_use", map[string]string{"class": "unknown_read"}); got != 1 {
			t.Errorf("%v under way", got)
		}
		wg.Wait()
		if atOnce != 16 {
			t.Errorf("%d were refused at once", atOnce)
		}
		if got := p.count(t, "glidepath_authz_reviews_shed_total", map[string]string{"class": "unknown_read"}); got != 16 {
			t.Errorf("%v counted as shed", got)
		}
		for _, metric := range []string{"glidepath_authz_reviews_waiting", "glidepath_authz_review_slots_in_use"} {
			if got := p.count(t, metric, map[string]string{"class": "unknown_read"}); got != 0 {
				t.Errorf("%s: %v at the end", metric, got)
			}
		}
	})
}

// A token that a flood repeats stops being known with the first refusal.
func TestARefusedTokenIsKnownNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, limits(review.Limits{UnknownRead: 1, UnknownWrite: 1, Read: 1, Write: 1, Waiting: 10}))
		p.api.AcceptUser("once-good", "u")
		p.authenticate(t.Context(), "once-good", authn.ForRead)
		p.api.Revoke("once-good")
		if got := p.authenticate(t.Context(), "once-good", authn.ForWrite); got != "GP-AUTH-002" {
			t.Fatal(got)
		}
		p.slow(time.Second, nil)
		var wg sync.WaitGroup
		wg.Go(func() { p.authenticate(t.Context(), "once-good", authn.ForWrite) })
		synctest.Wait()
		if got := p.count(t, "glidepath_authz_review_slots_in_use", map[string]string{"class": "write"}); got != 0 {
			t.Errorf("it holds %v of the slots for known tokens", got)
		}
		wg.Wait()
	})
}

func TestEverySlotIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, limits(review.Limits{UnknownRead: 1, UnknownWrite: 1, Read: 1, Write: 1, Waiting: 10}))
		p.api.AcceptUser("good", "u")
		p.api.Grant("u", "list", "runs", "")
		c := p.caller(t, "good")
		for _, status := range []int{http.StatusCreated, http.StatusInternalServerError} {
			if status != http.StatusCreated {
				p.answer(status, nil)
			}
			for n := range 5 {
				right := list
				right.Namespace = fmt.Sprintf("app-%d-%d-cicd", n, status)
				for _, purpose := range []authn.Purpose{authn.ForRead, authn.ForWrite} {
					ctx, cancel := context.WithTimeout(t.Context(), review.FillTimeout)
					began := time.Now()
					if _, err := p.access.Allowed(ctx, c, right, purpose); (err != nil) != (status != http.StatusCreated) || time.Since(began) > 0 {
						t.Errorf("%d: %v after %s", status, err, time.Since(began))
					}
					p.authenticate(ctx, fmt.Sprintf("bad-%d-%d", n, status), purpose)
					if waited := time.Since(began); waited > 0 {
						t.Errorf("%d: waited %s", status, waited)
					}
					cancel()
				}
			}
		}
	})
}
