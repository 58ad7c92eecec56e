package lifecycle_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOneBrokenTaskEndsTheOthersAndIsTheError(t *testing.T) {
	broken := errors.New("broken")
	ended := false
	err := lifecycle.Run(t.Context(),
		func(ctx context.Context) error { <-ctx.Done(); ended = true; return ctx.Err() },
		func(context.Context) error { return broken },
	)
	if !errors.Is(err, broken) || !ended {
		t.Errorf("err %v, the other task ended: %v", err, ended)
	}
}

func TestAnOrderedEndIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := lifecycle.Run(ctx,
		lifecycle.Loop(func(ctx context.Context) { <-ctx.Done() }),
		func(context.Context) error { cancel(); return nil },
	)
	if err != nil {
		t.Error(err)
	}
}

func TestACallUnderWayIsAnsweredWhenTheServerIsAskedToStop(t *testing.T) {
	l, err := lifecycle.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	arrived, finish := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-finish
		_, _ = io.WriteString(w, "done")
	})
	served := make(chan error, 1)
	go func() { served <- lifecycle.Run(ctx, lifecycle.Serve(l, h)) }()
	type answer struct {
		body string
		err  error
	}
	got := make(chan answer, 1)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		res, err := client.Get("http://" + l.Addr().String())
		if err != nil {
			got <- answer{err: err}
			return
		}
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		got <- answer{string(b), err}
	}()
	<-arrived
	cancel()
	waitRefused(t, l.Addr().String())
	close(finish)
	if a := <-got; a.err != nil || a.body != "done" {
		t.Errorf("the call under way got %q, %v", a.body, a.err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// waitRefused returns once nobody listens on addr any more.
func waitRefused(t *testing.T, addr string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		_ = c.Close()
	}
	t.Fatal("still listening")
}

func TestAUnixSocketIsOursAloneAndNeverShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	l, err := lifecycle.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if _, err := lifecycle.ListenUnix(path); err == nil {
		t.Error("a second process took the socket of one that serves it")
	}
	// What a killed process leaves: the file, with nobody behind it.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := lifecycle.ListenUnix(path)
	if err != nil {
		t.Fatalf("a socket left behind: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestProbesSayWhyAProcessIsNotReady(t *testing.T) {
	mux := http.NewServeMux()
	var reason error
	lifecycle.Probes(mux, func() error { return reason })
	status := func(path string) int {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	if got := status("/readyz"); got != http.StatusOK {
		t.Errorf("ready: %d", got)
	}
	reason = errors.New("namespaces not synced")
	if got := status("/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("not ready: %d", got)
	}
	if got := status("/healthz"); got != http.StatusOK {
		t.Errorf("alive though not ready: %d", got)
	}
}

func TestTheMetricsListenerServesNothingElse(t *testing.T) {
	h := lifecycle.MetricsHandler(prometheus.NewRegistry())
	for path, want := range map[string]int{"/metrics": 200, "/": 404, "/v1/whoami": 404, "/debug/pprof/": 404} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}
