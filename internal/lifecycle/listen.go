package lifecycle

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Listen opens a TCP listener.
func Listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", addr, err)
	}
	return l, nil
}

// ListenUnix opens a Unix socket that only this user may connect to. A socket
// that an ended process left behind is replaced; one that still answers is an
// error, so that two processes never share a path.
func ListenUnix(path string) (net.Listener, error) {
	switch c, err := net.Dial("unix", path); {
	case err == nil:
		return nil, errors.Join(fmt.Errorf("listening on %s: another process serves it", path), c.Close())
	case errors.Is(err, syscall.ECONNREFUSED):
		// Nobody is behind it. Any other failure can be a process too busy to
		// answer, whose socket must stay.
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("listening on %s: %w", path, err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listening on %s: %w", path, err), l.Close())
	}
	return l, nil
}

// MetricsHandler serves /metrics from g and nothing else.
func MetricsHandler(g prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{
		// One broken collector must not blind the operator to all others.
		ErrorHandling: promhttp.ContinueOnError,
		// Nobody proves who they are here, so a slow collector must not be
		// made to gather a queue.
		MaxRequestsInFlight: 4,
		Timeout:             10 * time.Second,
	}))
	return mux
}

// Probes adds GET /healthz, which answers as long as the process can, and GET
// /readyz, which answers 503 with the reason while ready returns an error.
func Probes(mux *http.ServeMux, ready func() error) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n")) // a prober that is gone needs no answer
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
}
