package livehub

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/sse"
)

// A namespace that is made anew under its name has nothing of the one before: not
// its viewers' streams, and not their places.
func TestANamespaceMadeAnewInheritsNoViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTheatre(t, 10)
		p := &replica{t: t, keys: newKeys(t)}
		verifier, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: p.keys.dir, Backend: backend})
		if err != nil {
			t.Fatal(err)
		}
		op := func(*http.Request) string { return "streamLiveRuns" }
		view := func(ctx context.Context, c identity.Claims, lastID string) func() (line, error) {
			l, done := line{httptest.NewRecorder()}, make(chan error, 1)
			r := p.request("/v1/apps/shop/live/stream", c).WithContext(ctx)
			r.SetPathValue("app", shop)
			go identity.Require(verifier, op, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s, err := calls.AppScope(r, shop)
				if err == nil {
					err = h.serve(w, r, s, lastID, time.Minute)
				}
				done <- err
			})).ServeHTTP(l, r)
			return func() (line, error) { err := <-done; return l, err }
		}
		letIn := func(uid string) identity.Claims { return claims("streamLiveRuns", about(shop, "ns", uid)) }
		ctx, leave := context.WithCancel(t.Context())
		first := letIn("old")
		patient, end := context.WithTimeout(ctx, time.Minute)
		defer end()
		open := view(patient, first, "")
		synctest.Wait()

		// The app is removed and made again, and somebody looks at it.
		time.Sleep(10 * time.Second)
		stays := view(ctx, letIn("new"), "")
		ended, err := open()
		r := sse.NewReader(ended.Body, 1<<20)
		_, err1 := r.Next()
		last, err2 := r.Next()
		if err != nil || err1 != nil || err2 != nil || last.Type != "end" || string(last.Data) != `{"reason":"drain"}` {
			t.Errorf("a viewer of the old one is at last sent %s %s: %v", last.Type, last.Data, err)
		}
		if got := h.watches(); got != 1 {
			t.Errorf("%v namespaces are followed", got)
		}

		// Who was let in to the old one does not see the new one.
		_, err = view(ctx, first, last.ID)()
		if p := problem.From(err); p.Rule.ID != problem.Busy.ID || p.Hint != "call again" {
			t.Errorf("it is answered %v", err)
		}
		// Who is let in to the new one begins with everything.
		again, leaveAgain := context.WithCancel(t.Context())
		back := view(again, letIn("new"), last.ID)
		synctest.Wait()
		leaveAgain()
		if l, err := back(); err != nil || !strings.Contains(l.Body.String(), "event: reset\ndata: {\"reason\":\"namespace\"}\n") || !strings.Contains(l.Body.String(), "event: snapshot\n") {
			t.Errorf("it is sent %s, %v", l.Body, err)
		}
		leave()
		if _, err := stays(); err != nil {
			t.Error(err)
		}
	})
}
