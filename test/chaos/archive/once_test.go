package archive_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/internal/standin/results"
	"hangar.io/glidepath/test/chaos/steps"
)

// eachIsReadOnce counts what is read when many ask for the same at once: once while replicas know of each other, once by each
// while they do not.
func eachIsReadOnce(t *testing.T, w *world) {
	w.gw.Results.SetFaults(results.Fault{Delay: 200 * time.Millisecond})
	defer w.gw.Results.SetFaults()
	both, redisProcess := w.processes(), w.gw.Redis.Process
	for _, tc := range []struct {
		name         string
		before, then steps.Step // then happens when the archive is being asked
		after        steps.Step
		most         int
	}{
		{name: "all is well", most: 1},
		{name: "Redis is away", before: steps.Both(steps.Kill(redisProcess), w.alone(t, true)), after: steps.Both(steps.Restart(redisProcess), w.alone(t, false)), most: replicas},
		{name: "a replica is killed that reads", then: steps.Kill(both[0]), after: steps.Restart(both[0]), most: 2},
	} {
		if tc.before != nil {
			if err := tc.before(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for again := true; again; {
			again = w.readOnce(t, tc.name, tc.most, tc.then)
			tc.then = nil
		}
		if tc.after != nil {
			if err := tc.after(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.unbroken(t)
}

// readOnce has many ask for a run and for a log, and counts. again says that nothing can be told, since a replica has lost its
// Redis, as may happen on a machine that is busy.
func (w *world) readOnce(t *testing.T, name string, most int, then steps.Step) (again bool) {
	t.Helper()
	r := w.begin(w.apps[2].now(), false, "", 1)
	if err := w.whole(r, 1); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	run, log := w.askRun(r), w.askLog(r.tasks[0])
	w.mu.Unlock()
	for _, c := range []struct {
		what string
		q    question
	}{{"/records/" + r.uid, run}, {"/logs/" + r.tasks[0].uid, log}} {
		w.gw.Results.Reset()
		w.storm(t, c.q, c.what, then)
		then = nil
		times := w.read(c.what)
		if times <= most {
			continue
		}
		for _, b := range w.gw.Runs {
			if most < replicas && shows(t.Context(), b.Metrics, redisUp+" 1") != nil {
				return true
			}
		}
		t.Errorf("%s: for %d who asked for %s it was read %d times", name, storm, c.q.path, times)
	}
	return false
}

// read is how often the archive was asked for something.
func (w *world) read(what string) (times int) {
	for _, r := range w.gw.Results.Requests() {
		if strings.Contains(r.URI, what) {
			times++
		}
	}
	return times
}

// redisUp is the metric that says whether a replica uses its Redis.
const redisUp = `glidepath_cache_redis_up{cache="runs"}`

// storm is how many ask at once.
const storm = 16

// storm has many ask the same at once, and something happen meanwhile. All of them are answered in the end.
func (w *world) storm(t *testing.T, q question, what string, then steps.Step) {
	t.Helper()
	var asking sync.WaitGroup
	outcomes := make([]error, storm)
	for i := range storm {
		c := newCaller(w.gw.URL, w.token, uint64(200+i))
		c.patient = true
		asking.Go(func() {
			defer c.http.CloseIdleConnections()
			// Who waited in vain asks again, and finds the same reading.
			for end := time.Now().Add(patience); time.Now().Before(end); {
				failed, err := w.put(t.Context(), c, q)
				if outcomes[i] = err; failed == "" {
					break
				}
				outcomes[i] = errors.New(failed)
			}
		})
	}
	if then != nil {
		eventually(t, "the archive is asked", func() error {
			if w.read(what) == 0 {
				return errors.New("it is not")
			}
			return nil
		})
		if err := then(t.Context()); err != nil {
			t.Error(err)
		}
	}
	asking.Wait()
	for _, err := range outcomes {
		if err != nil {
			t.Errorf("one of %d who asked for %s: %v", storm, q.path, err)
		}
	}
}

// alone waits until every replica knows that it is, or is not, alone.
func (w *world) alone(t *testing.T, really bool) steps.Step {
	return func(context.Context) error {
		want := redisUp + " 1"
		if really {
			want = redisUp + " 0"
		}
		eventually(t, "replicas know whether Redis is away", func() error {
			for _, b := range w.gw.Runs {
				if err := shows(t.Context(), b.Metrics, want); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	}
}

// mixUp puts values under each other's names.
func mixUp(ctx context.Context, c *redis.Client) error {
	keys, err := c.Keys(ctx, "glidepath:*:runs:*").Result()
	if err != nil {
		return err
	}
	if len(keys) < 2 {
		return errors.New("there is nothing to mix up")
	}
	for i, key := range keys {
		value, err := c.Get(ctx, keys[(i+1)%len(keys)]).Bytes()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err == nil {
			err = c.Set(ctx, key, value, redis.KeepTTL).Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
