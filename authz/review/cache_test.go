package review_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"hangar.io/glidepath/authz/apifake"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/internal/problem"
)

func jwtUntil(exp time.Time) string {
	claims := fmt.Sprintf(`{"iss":"https://kubernetes.default.svc","exp":%d}`, exp.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestAnAcceptedTokenIsRememberedTenSecondsForReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		p.api.AcceptUser("good", "u")
		read := func() string { return p.authenticate(t.Context(), "good", authn.ForRead) }
		read()
		p.api.Revoke("good")
		time.Sleep(review.AcceptedTTL - time.Nanosecond)
		if got := read(); got != "u" || len(p.api.Tried()) != 1 {
			t.Errorf("within its time: %s after %d reviews", got, len(p.api.Tried()))
		}
		time.Sleep(time.Nanosecond)
		if got := read(); got != "GP-AUTH-002" || len(p.api.Tried()) != 2 {
			t.Errorf("at its end: %s after %d reviews", got, len(p.api.Tried()))
		}
	})
}

func TestTheTimeOfAVerdictCountsFromTheMomentOfAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		p.api.AcceptUser("good", "u")
		p.api.Grant("u", "list", "runs", "app-shop-cicd")
		p.slow(time.Second, nil)
		c := p.caller(t, "good")
		if ok, err := p.access.Allowed(t.Context(), c, list, authn.ForRead); !ok || err != nil {
			t.Fatal(ok, err)
		}
		p.api.Fail(nil)
		p.api.Forget()
		time.Sleep(8 * time.Second) // 10 s after asking for the token, 9 s for the right
		p.authenticate(t.Context(), "good", authn.ForRead)
		if n := len(p.api.Tried()); n != 1 {
			t.Errorf("the token was reviewed %d times", n)
		}
		time.Sleep(time.Second)
		if _, err := p.access.Allowed(t.Context(), c, list, authn.ForRead); err != nil || len(p.api.Asked()) != 1 {
			t.Errorf("the right was reviewed %d times, %v", len(p.api.Asked()), err)
		}
	})
}

func TestAnAcceptedTokenIsForgottenWhenItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		tok := jwtUntil(time.Now().Add(4 * time.Second))
		p.api.AcceptUser(tok, "u")
		read := func() string { return p.authenticate(t.Context(), tok, authn.ForRead) }
		read()
		p.api.Revoke(tok)
		time.Sleep(4*time.Second - time.Nanosecond)
		if got := read(); got != "u" {
			t.Errorf("before it expires: %s", got)
		}
		time.Sleep(time.Nanosecond)
		if got := read(); got != "GP-AUTH-002" {
			t.Errorf("after: %s", got)
		}
	})
}

func TestATokenThatIsAcceptedThoughOurClockSaysItExpiredIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		tok := jwtUntil(time.Now().Add(-time.Second))
		p.api.AcceptUser(tok, "u")
		for n := 1; n <= 3; n++ {
			if got := p.authenticate(t.Context(), tok, authn.ForRead); got != "u" || len(p.api.Tried()) != n {
				t.Errorf("%s after %d reviews, want %d", got, len(p.api.Tried()), n)
			}
		}
	})
}

func TestARefusedTokenIsRememberedAMomentForReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		read := func() string { return p.authenticate(t.Context(), "bad", authn.ForRead) }
		read()
		p.api.AcceptUser("bad", "u")
		time.Sleep(review.RefusedTTL - time.Nanosecond)
		if got := read(); got != "GP-AUTH-002" || len(p.api.Tried()) != 1 {
			t.Errorf("within its time: %s after %d reviews", got, len(p.api.Tried()))
		}
		time.Sleep(time.Nanosecond)
		if got := read(); got != "u" {
			t.Errorf("at its end: %s", got)
		}
	})
}

func TestARightIsRememberedTenSecondsAndARefusalFive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		p.api.AcceptUser("good", "u")
		p.api.Grant("u", "list", "runs", "app-shop-cicd")
		c := p.caller(t, "good")
		other := list
		other.Namespace = "app-other-cicd"
		read := func(r review.Right) bool {
			ok, err := p.access.Allowed(t.Context(), c, r, authn.ForRead)
			if err != nil {
				t.Error(err)
			}
			return ok
		}
		if !read(list) || read(other) {
			t.Fatal("wrong at once")
		}
		p.api.Withdraw("u", "list", "runs", "app-shop-cicd")
		p.api.Grant("u", "list", "runs", "app-other-cicd")
		time.Sleep(review.DeniedTTL - time.Nanosecond)
		if read(other) {
			t.Error("the refusal was forgotten early")
		}
		time.Sleep(time.Nanosecond)
		if !read(other) {
			t.Error("the refusal was remembered for too long")
		}
		time.Sleep(review.AllowedTTL - review.DeniedTTL - time.Nanosecond)
		if !read(list) {
			t.Error("the right was forgotten early")
		}
		time.Sleep(time.Nanosecond)
		if read(list) {
			t.Error("the right was remembered for too long")
		}
	})
}

func TestEveryPartOfAReviewTellsVerdictsApart(t *testing.T) {
	p := start(t)
	user := func(token string, change func(*apifake.Token)) *authn.Caller {
		a := apifake.Token{}
		a.User.Username, a.User.UID, a.User.Groups = "u", "1", []string{"g"}
		if change != nil {
			change(&a)
		}
		p.api.Accept(token, a)
		return p.caller(t, token)
	}
	callers := []*authn.Caller{
		user("a", nil),
		user("b", func(a *apifake.Token) { a.User.Username = "v" }),
		user("c", func(a *apifake.Token) { a.User.UID = "2" }),
		user("d", func(a *apifake.Token) { a.User.Groups = []string{"h"} }),
		user("e", func(a *apifake.Token) {
			a.User.Extra = map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=e"}}
		}),
	}
	rights := []review.Right{list}
	for _, change := range []func(*review.Right){
		func(r *review.Right) { r.Verb = "get" }, func(r *review.Right) { r.Group = "other" }, func(r *review.Right) { r.Resource = "tests" },
		func(r *review.Right) { r.Subresource = "logs" }, func(r *review.Right) { r.Namespace = "app-other-cicd" }, func(r *review.Right) { r.Namespace = "" },
	} {
		r := list
		change(&r)
		rights = append(rights, r)
	}
	for range 2 {
		for _, c := range callers {
			for _, r := range rights {
				if _, err := p.access.Allowed(t.Context(), c, r, authn.ForRead); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if got, want := len(p.api.Asked()), len(callers)*len(rights); got != want {
		t.Errorf("%d reviews for %d different questions", got, want)
	}
	// Two tokens of one user are two questions no more once they say the same.
	same := user("f", nil)
	if _, err := p.access.Allowed(t.Context(), same, list, authn.ForRead); err != nil || len(p.api.Asked()) != len(callers)*len(rights) {
		t.Errorf("the same question was asked again: %v", err)
	}
}

func TestWritesAreReviewedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		p.api.AcceptUser("good", "u")
		p.api.Grant("u", "list", "runs", "app-shop-cicd")
		c := p.caller(t, "good")
		if ok, err := p.access.Allowed(t.Context(), c, list, authn.ForRead); !ok || err != nil {
			t.Fatal(ok, err)
		}
		p.api.Forget()
		for n := 1; n <= 3; n++ {
			if got := p.authenticate(t.Context(), "good", authn.ForWrite); got != "u" || len(p.api.Tried()) != n {
				t.Errorf("%s after %d reviews, want %d", got, len(p.api.Tried()), n)
			}
			if ok, err := p.access.Allowed(t.Context(), c, list, authn.ForWrite); !ok || err != nil || len(p.api.Asked()) != n {
				t.Errorf("%v %v after %d reviews, want %d", ok, err, len(p.api.Asked()), n)
			}
		}
		p.api.Revoke("good")
		p.api.Withdraw("u", "list", "runs", "app-shop-cicd")
		if got := p.authenticate(t.Context(), "good", authn.ForWrite); got != "GP-AUTH-002" {
			t.Errorf("a revoked token may write: %s", got)
		}
		if ok, err := p.access.Allowed(t.Context(), c, list, authn.ForWrite); ok || err != nil {
			t.Errorf("a right that was withdrawn: %v %v", ok, err)
		}
		// What a write learns of a token ends what reads remember of it.
		if got := p.authenticate(t.Context(), "good", authn.ForRead); got != "GP-AUTH-002" {
			t.Errorf("a token refused for a write still reads: %s", got)
		}
	})
}

func TestARefusalRememberedForReadsDoesNotStopAWrite(t *testing.T) {
	p := start(t)
	if got := p.authenticate(t.Context(), "new", authn.ForRead); got != "GP-AUTH-002" {
		t.Fatal(got)
	}
	p.api.AcceptUser("new", "u")
	if got := p.authenticate(t.Context(), "new", authn.ForWrite); got != "u" {
		t.Errorf("got %s", got)
	}
}

func TestReadsAtOnceShareOneReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		p.api.AcceptUser("good", "u")
		p.api.Grant("u", "list", "runs", "app-shop-cicd")
		p.slow(time.Second, nil)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if got := p.authenticate(t.Context(), "good", authn.ForRead); got != "u" {
					t.Errorf("got %s", got)
					return
				}
				ok, err := p.access.Allowed(t.Context(), p.caller(t, "good"), list, authn.ForRead)
				if !ok || err != nil {
					t.Errorf("got %v %v", ok, err)
				}
			})
		}
		wg.Wait()
		if tokens, rights := len(p.api.Tried()), len(p.api.Asked()); tokens != 1 || rights != 1 {
			t.Errorf("%d reviews of the token, %d of the right", tokens, rights)
		}
		if got := p.count(t, "glidepath_authz_cache_lookups_total", map[string]string{"cache": "token", "result": "joined"}); got != 49 {
			t.Errorf("%v joined", got)
		}
	})
}

// A write that begins while a read's review is under way must not take that
// review's answer: what it says was true before the write began.
func TestAWriteNeverJoinsAReviewThatBeganBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		p.api.AcceptUser("good", "u")
		p.api.Grant("u", "list", "runs", "app-shop-cicd")
		c := p.caller(t, "good")
		time.Sleep(review.AcceptedTTL)
		// The API server decides at once and answers late.
		p.api.Fail(nil)
		late := make(chan struct{})
		p.api.Fail(func(w http.ResponseWriter, r *http.Request) bool {
			select {
			case <-late:
				return false
			default:
			}
			rw := &held{ResponseWriter: w, release: late}
			p.api.Decide(rw, r)
			return true
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if got := p.authenticate(t.Context(), "good", authn.ForRead); got != "u" {
				t.Errorf("the read: %s", got)
			}
		})
		wg.Go(func() {
			if ok, err := p.access.Allowed(t.Context(), c, list, authn.ForRead); !ok || err != nil {
				t.Errorf("the read's right: %v %v", ok, err)
			}
		})
		synctest.Wait() // both reviews are decided, and their answers on their way
		p.api.Revoke("good")
		p.api.Withdraw("u", "list", "runs", "app-shop-cicd")
		wg.Go(func() {
			if got := p.authenticate(t.Context(), "good", authn.ForWrite); got != "GP-AUTH-002" {
				t.Errorf("the write took the read's answer: %s", got)
			}
		})
		wg.Go(func() {
			if ok, err := p.access.Allowed(t.Context(), c, list, authn.ForWrite); ok || err != nil {
				t.Errorf("the write took the read's right: %v %v", ok, err)
			}
		})
		synctest.Wait()
		close(late)
		wg.Wait()
	})
}

// held is a response whose first byte waits.
type held struct {
	http.ResponseWriter
	release <-chan struct{}
	once    sync.Once
}

func (h *held) WriteHeader(code int) {
	h.once.Do(func() { <-h.release })
	h.ResponseWriter.WriteHeader(code)
}

func TestAFloodOfMadeUpTokensEvictsNoGoodOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		for n := range 100 {
			p.api.AcceptUser(fmt.Sprintf("good-%d", n), "u")
			p.authenticate(t.Context(), fmt.Sprintf("good-%d", n), authn.ForRead)
		}
		for n := range 10 * review.RefusedSize {
			p.authenticate(t.Context(), fmt.Sprintf("bad-%d", n), authn.ForRead)
		}
		p.api.Forget()
		for n := range 100 {
			if got := p.authenticate(t.Context(), fmt.Sprintf("good-%d", n), authn.ForRead); got != "u" {
				t.Errorf("good-%d: %s", n, got)
			}
		}
		if n := len(p.api.Tried()); n != 0 {
			t.Errorf("%d good tokens were evicted", n)
		}
	})
}

func TestAnErrorOfASharedReviewReachesAllWhoJoinedAndNobodyAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		p.api.AcceptUser("good", "u")
		p.slow(time.Hour, nil)
		began := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if got := p.authenticate(t.Context(), "good", authn.ForRead); got != problem.SourceFailed.ID {
					t.Errorf("got %s", got)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took != review.FillTimeout {
			t.Errorf("it took %s", took)
		}
		p.api.Fail(nil)
		if got := p.authenticate(t.Context(), "good", authn.ForRead); got != "u" {
			t.Errorf("afterwards: %s", got)
		}
	})
}
