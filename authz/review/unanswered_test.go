package review_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/problem"
)

// rule: R402
func TestABusyAPIServerIsAskedOnceAndItsWaitIsPassedOn(t *testing.T) {
	for _, tc := range []struct{ after, hint string }{
		{"1", "try again in 1 s"},
		{"7", "try again in 7 s"},
		{"86400", "try again in 60 s"},
		{"", "try again"},
		{"-1", "try again"},
		{"99999999999999999999", "try again"},
		{"Wed, 21 Oct 2026 07:28:00 GMT", "try again"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := start(t)
			p.api.AcceptUser("good", "u")
			caller := p.caller(t, "good")
			var asked atomic.Int32
			p.api.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
				asked.Add(1)
				w.Header().Set("Retry-After", tc.after)
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			})
			tok, err := token.FromHeaders(bearer("good"))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, tokenErr := p.tokens.Authenticate(t.Context(), tok, authn.ForWrite)
			_, accessErr := p.access.Allowed(t.Context(), caller, list, authn.ForWrite)
			for _, err := range []error{tokenErr, accessErr} {
				if b := problem.From(err).Body(""); b.Rule != "GP-API-502" || !strings.HasSuffix(b.Hint, tc.hint) {
					t.Errorf("%q: %+v", tc.after, b)
				}
			}
			if n := asked.Load(); n != 2 || time.Since(began) > 0 {
				t.Errorf("%q: asked %d times in %s", tc.after, n, time.Since(began))
			}
		})
	}
}

// What a caller is may take megabytes, and thousands of callers are remembered.
func TestCallersInManyGroupsAreRememberedWithinABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		groups := make([]string, 100)
		for i := range groups {
			groups[i] = strings.Repeat("g", 10_000)
		}
		const callers = 40 // of a megabyte each
		name := func(i int) string { return "caller" + strings.Repeat("x", i) }
		for i := range callers {
			p.api.AcceptUser(name(i), "u", groups...)
			p.caller(t, name(i))
		}
		p.api.Forget()
		for i := callers - 1; i >= 0; i-- {
			p.caller(t, name(i))
		}
		if n := len(p.api.Tried()); n < 5 || n > 20 {
			t.Errorf("of %d callers of a megabyte %d were forgotten", callers, n)
		}
	})
}
