package chaos_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"hangar.io/glidepath/internal/identity"
)

// writes stands behind the planned operations. Each write must bring an identity for exactly this caller, operation, app and
// request, be due, and come once.
type writes struct {
	verifier *identity.Verifier
	load     *load

	mu   sync.Mutex
	came map[string]bool // calls by trace
}

// ServeHTTP judges a write as it arrives: an identity lives for a minute.
func (w *writes) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("call")
	if err := w.judge(id, r); err != nil {
		w.load.fault("a write that is not due reached the backend (trace %s): %v", id, err)
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(rw, `{}`)
}

func (w *writes) judge(id string, r *http.Request) error {
	w.load.mu.Lock()
	v := w.load.calls[id]
	w.load.mu.Unlock()
	if v == nil {
		return errors.New("no caller sent it")
	}
	claims, err := w.verifier.Verify(r.Header.Get(identity.Header))
	if err != nil {
		return err
	}
	for _, c := range []struct{ what, got, want string }{
		{"operation", claims.Op, v.part.op},
		{"app", claims.App, v.part.app},
		{"caller", claims.Subject, v.part.user},
		{"method", claims.Method, r.Method},
		{"request", claims.TargetHash, identity.HashTarget(r.RequestURI)},
		{"path", r.URL.Path, v.part.path},
		{"token", r.Header.Get("Authorization"), ""},
	} {
		if c.got != c.want {
			return fmt.Errorf("its %s is %q, not %q", c.what, c.got, c.want)
		}
	}
	if !v.part.due(v.began) {
		return errors.New("its caller had no right to it")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.came[id] {
		return errors.New("it came twice")
	}
	w.came[id] = true
	return nil
}

// answered fails for writes that were told to be done and never came.
func (w *writes) missing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.load.mu.Lock()
	defer w.load.mu.Unlock()
	var ids []string
	for id, v := range w.load.calls {
		if v.part.writes() && v.status == http.StatusOK && !w.came[id] {
			ids = append(ids, id)
		}
	}
	return ids
}
