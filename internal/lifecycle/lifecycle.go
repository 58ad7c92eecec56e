// Package lifecycle owns how a process starts, serves and ends: signals, a
// group of tasks that end together, HTTP servers with bounds on what they read, the
// metrics listener and the probes.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// DrainTime is how long a server that is asked to stop waits for the calls
// that it is answering.
const DrainTime = 10 * time.Second

// Main runs a process: JSON logs on stderr, run's context ends with SIGINT or
// SIGTERM, and the exit code is 1 when run fails.
func Main(name string, run func(ctx context.Context) error) {
	slog.SetDefault(slog.New(newThinHandler(slog.NewJSONHandler(os.Stderr, nil))).With("process", name))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		slog.Error("process failed", "error", err)
		os.Exit(1)
	}
}

// Task is one long-running part of a process. It returns when ctx ends, with
// nil or ctx's error, or earlier with what broke.
type Task func(ctx context.Context) error

// Run runs the tasks side by side until ctx ends or one of them returns an
// error, which ends the others. It returns when all have ended, with the first
// error. A task that returns nil early ends nothing.
func Run(ctx context.Context, tasks ...Task) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range tasks {
		g.Go(func() error { return t(ctx) })
	}
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Loop makes a Task of a function that runs until its context ends.
func Loop(f func(ctx context.Context)) Task {
	return func(ctx context.Context) error {
		f(ctx)
		return nil
	}
}

// NewServer gives an HTTP server with timeouts for reading and for idle
// connections. There is no write timeout: it would end streams; a stream sets
// its own deadline for each write.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
}

// Serve makes a Task that serves h on l until its context ends, then lets the
// calls under way finish for DrainTime. It owns l.
func Serve(l net.Listener, h http.Handler) Task {
	return func(ctx context.Context) error {
		srv := NewServer(h)
		done := make(chan error, 1)
		go func() { done <- srv.Serve(l) }()
		select {
		case err := <-done:
			return fmt.Errorf("serving on %s: %w", l.Addr(), err)
		case <-ctx.Done():
		}
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTime)
		defer cancel()
		err := srv.Shutdown(drain)
		if err != nil {
			err = errors.Join(fmt.Errorf("draining %s: %w", l.Addr(), err), srv.Close())
		}
		<-done
		return err
	}
}
