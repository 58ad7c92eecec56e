package warm_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/services/runs/warm"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}

// world is a cluster with apps, and what was read of them.
type world struct {
	mu    sync.Mutex
	fails int             // listings that fail before one does not
	bad   map[string]bool // apps that cannot be read
	slow  time.Duration   // of one app
	lists int
	at    int
	read  []string
	busy  bool // callers never pause
}

func (w *world) config() warm.Config {
	return warm.Config{
		Patience: 10 * time.Second, Metrics: prometheus.NewRegistry(),
		Apps: func(context.Context) ([]calls.Scope, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.lists++; w.lists <= w.fails {
				return nil, errors.New("away")
			}
			var all []calls.Scope
			for i := range 4 {
				all = append(all, calls.Scope{Namespace: fmt.Sprint("app-", i), UID: fmt.Sprint(i)})
			}
			return all, nil
		},
		Read: func(ctx context.Context, app calls.Scope) error {
			w.begin()
			defer w.end(app)
			select {
			case <-time.After(w.slow):
			case <-ctx.Done():
				return ctx.Err()
			}
			if w.bad[app.Namespace] {
				return errors.New("broken")
			}
			return nil
		},
		Quiet: func(ctx context.Context) error {
			if !w.busy {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		},
	}
}

func (w *world) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at++
	if w.at > 1 {
		w.read = append(w.read, "two at once")
	}
}

func (w *world) end(app calls.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at--
	w.read = append(w.read, app.Namespace)
}

func (w *world) run(ctx context.Context, t *testing.T, cfg warm.Config) {
	t.Helper()
	warmer, err := warm.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	warmer.Run(ctx)
}

var all = []string{"app-0", "app-1", "app-2", "app-3"}

func TestEveryAppIsReadOneAtATime(t *testing.T) {
	for name, w := range map[string]*world{
		"at once":                                {},
		"however slow it is":                     {slow: time.Minute},
		"after the cluster has come back":        {fails: 5},
		"although one of them cannot be read":    {bad: map[string]bool{"app-1": true}},
		"although callers never stop for a time": {busy: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w.run(t.Context(), t, w.config())
				if !slices.Equal(w.read, all) || w.lists != w.fails+1 {
					t.Errorf("read %v after %d lists", w.read, w.lists)
				}
			})
		})
	}
}

func TestCallersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		quiet := make(chan struct{})
		cfg := w.config()
		cfg.Quiet = func(ctx context.Context) error {
			select {
			case <-quiet:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.run(t.Context(), t, cfg)
		}()
		time.Sleep(cfg.Patience - time.Second)
		if len(w.read) != 0 {
			t.Errorf("read %v while callers read", w.read)
		}
		close(quiet)
		synctest.Wait()
		<-done
		if !slices.Equal(w.read, all) {
			t.Errorf("read %v", w.read)
		}
	})
}

func TestItStopsWhereItIs(t *testing.T) {
	for name, w := range map[string]*world{
		"while it reads":             {slow: time.Hour},
		"while it lets others go on": {busy: true},
		"while it cannot list":       {fails: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				w.run(ctx, t, w.config())
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("it ended after %s", took)
				}
			})
		})
	}
}

func TestOneReplicaDoesItForAll(t *testing.T) {
	w := &world{}
	cfg := w.config()
	cfg.Lease = func(context.Context, func(context.Context) error) error { return nil } // another did it
	w.run(t.Context(), t, cfg)
	if w.lists != 0 || len(w.read) != 0 {
		t.Errorf("read %v after %d lists", w.read, w.lists)
	}
	// What ends its work is told to the lease, which has another do it.
	ctx, cancel := context.WithCancel(t.Context())
	cfg = w.config()
	cfg.Lease = func(_ context.Context, work func(context.Context) error) error {
		cancel()
		if err := work(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("its work ended with %v", err)
		}
		return nil
	}
	w.slow = time.Hour
	w.run(t.Context(), t, cfg)
}

func TestAWarmerNeedsItsParts(t *testing.T) {
	for name, change := range map[string]func(*warm.Config){
		"no apps":     func(c *warm.Config) { c.Apps = nil },
		"no reader":   func(c *warm.Config) { c.Read = nil },
		"no manners":  func(c *warm.Config) { c.Quiet = nil },
		"no patience": func(c *warm.Config) { c.Patience = 0 },
		"no metrics":  func(c *warm.Config) { c.Metrics = nil },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := (&world{}).config()
			change(&cfg)
			if _, err := warm.New(cfg); err == nil {
				t.Error("it is made")
			}
		})
	}
}
