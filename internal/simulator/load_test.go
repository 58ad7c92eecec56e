package simulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"hangar.io/glidepath/internal/simulator/life"
	"hangar.io/glidepath/internal/simulator/load"
)

// watcher is a client that no load uses.
func watcher(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(api.Admin)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func newLoad(t *testing.T, cfg load.Config) *load.Load {
	t.Helper()
	if cfg.REST == nil {
		cfg.REST = api.Admin
	}
	cfg.NoController = true // the API server runs alone
	l, err := load.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := l.Remove(ctx); err != nil && !strings.Contains(err.Error(), "not of this load") {
			t.Error(err)
		}
	})
	return l
}

// until runs the load until done says so.
func until(t *testing.T, l *load.Load, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case err := <-ended:
			t.Fatalf("waiting until %s: the load ended with %v: %v", what, err, l.Stats())
		case <-ticker.C:
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// held counts the objects of the load's namespaces.
func held(t *testing.T, l *load.Load) (runs, tasks int) {
	t.Helper()
	w := watcher(t)
	for _, namespace := range l.Namespaces() {
		for resource, count := range map[string]*int{"pipelineruns": &runs, "taskruns": &tasks} {
			list, err := w.Resource(pipelineRuns().GroupVersion().WithResource(resource)).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			*count += len(list.Items)
		}
	}
	return runs, tasks
}

// watched prepares the load and watches all that it makes.
func watched(t *testing.T, l *load.Load) (worlds []*world, since func() int) {
	t.Helper()
	if err := l.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs, tasks := held(t, l)
	for _, namespace := range l.Namespaces() {
		worlds = append(worlds, watchRuns(t, namespace, true))
	}
	events := func() (all int) {
		for _, w := range worlds {
			w.mu.Lock()
			all += w.events
			w.mu.Unlock()
		}
		return all
	}
	waitAll(t, "the watches have begun", func() bool { return events() == runs+tasks })
	for _, w := range worlds {
		w.mu.Lock()
		w.late = false
		w.mu.Unlock()
	}
	return worlds, func() int { return events() - runs - tasks }
}

func waitAll(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("waiting until %s: %v", what, ctx.Err())
		case <-ticker.C:
		}
	}
}

// Every change that the load says it made is one that a watcher saw, each of them legal, and there are not more of them
// than were asked for.
func TestALoadMakesTheChangesItWasAskedForAndNoOther(t *testing.T) {
	t.Parallel()
	const pace = 120
	l := newLoad(t, load.Config{Namespaces: 2, Runs: 3, Rate: pace, Seed: 11})
	worlds, seen := watched(t, l)
	if runs, tasks := held(t, l); runs != 6 || tasks == 0 {
		t.Errorf("%d runs with %d TaskRuns are there at the beginning, want 6 with some", runs, tasks)
	}
	begun := time.Now()
	until(t, l, "many changes are made", func() bool { s := l.Stats(); return s.Changes >= 400 && s.Removed > 0 })
	took, stats := time.Since(begun), l.Stats()
	if most := pace * (took.Seconds() + 0.2); float64(stats.Changes) > most {
		t.Errorf("%v in %v, want at most %.0f", stats, took, most)
	}
	if stats.Rate <= 0 || stats.Created == 0 || stats.Errors+stats.Conflicts > 0 {
		t.Errorf("got %v, want runs that end and runs that begin and no error", stats)
	}
	waitAll(t, "every change is seen", func() bool { return seen() >= int(stats.Changes) })
	if got := seen(); got != int(stats.Changes) {
		t.Errorf("%d changes were seen, %d made", got, stats.Changes)
	}
	for _, w := range worlds {
		w.mu.Lock()
		if w.most > 3 {
			t.Errorf("%d runs were under way in %s, want at most 3", w.most, w.namespace)
		}
		w.mu.Unlock()
	}
}

func TestObjectsOfALoadAreAboutAsLargeAsAsked(t *testing.T) {
	t.Parallel()
	const size = 9000
	l := newLoad(t, load.Config{Namespaces: 1, Runs: 4, Rate: 500, Seed: 12, ObjectBytes: size})
	worlds, _ := watched(t, l)
	until(t, l, "some runs have ended", func() bool { return l.Stats().Removed > 10 })
	list, err := worlds[0].client.Resource(pipelineRuns()).Namespace(worlds[0].namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range list.Items {
		object.SetManagedFields(nil)
		text, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) < size/2 || len(text) > size*11/10 {
			t.Errorf("%s has %d bytes, want about %d", object.GetName(), len(text), size)
		}
	}
}

// unreliable loses answers to requests that were carried out, and refuses others.
type unreliable struct {
	http.RoundTripper
	writes *atomic.Int64
}

func (u unreliable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.URL.Query().Has("labelSelector") || strings.Contains(r.URL.Path, "/api/v1/") {
		return u.RoundTripper.RoundTrip(r)
	}
	number := u.writes.Add(1)
	if number%11 == 0 {
		return nil, errors.New("refused on purpose")
	}
	resp, err := u.RoundTripper.RoundTrip(r)
	if err == nil && number%7 == 0 {
		_, _ = io.Copy(io.Discard, resp.Body) // what it says is lost on purpose
		_ = resp.Body.Close()
		return nil, errors.New("answer lost on purpose")
	}
	return resp, err
}

func TestALoadGoesOnWhenRequestsFailAndOthersWrite(t *testing.T) {
	t.Parallel()
	cfg := rest.CopyConfig(api.Admin)
	var writes atomic.Int64
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return unreliable{next, &writes} })
	l := newLoad(t, load.Config{REST: cfg, Namespaces: 1, Runs: 4, Rate: 400, Seed: 13})
	worlds, _ := watched(t, l)
	w := worlds[0]
	touched := 0
	until(t, l, "it met with conflicts and errors, and runs have ended", func() bool {
		w.mu.Lock()
		var names []string
		for name := range w.runs {
			names = append(names, name)
		}
		w.mu.Unlock()
		for _, name := range names {
			_, err := w.client.Resource(pipelineRuns()).Namespace(w.namespace).
				Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"somebody":"was here"}}}`), metav1.PatchOptions{})
			if err == nil {
				touched++
			} else if !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
		s := l.Stats()
		return touched > 0 && s.Conflicts > 0 && s.Errors > 5 && s.Removed > 20
	})
	if runs, _ := held(t, l); runs < 1 || runs > 4 {
		t.Errorf("%d runs are there, want up to 4", runs)
	}
}

func TestALoadRemovesWhatItMadeAndOnlyThat(t *testing.T) {
	t.Parallel()
	l := newLoad(t, load.Config{Namespaces: 2, Runs: 2, Rate: 100, Seed: 14})
	if err := l.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	theirs := watchRuns(t, l.Namespaces()[0], true)
	theirs.ask(life.Sample{Name: "build-theirs", Pipeline: life.PipelineBuild})
	if err := l.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "build-theirs") {
		t.Errorf("got %v, want what is in the way", err)
	}
	if runs, tasks := held(t, l); runs != 1 || tasks != 0 {
		t.Errorf("%d runs and %d TaskRuns are left, want build-theirs alone", runs, tasks)
	}
	_, err := api.Client.CoreV1().Namespaces().Get(t.Context(), l.Namespaces()[1], metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the namespace that nobody else uses: got %v, want it gone", err)
	}
	if err := l.Remove(t.Context()); err == nil {
		t.Error("removing again hides that a namespace stayed")
	}
}

func TestALoadTakesNoNamespaceOfOthers(t *testing.T) {
	t.Parallel()
	l := newLoad(t, load.Config{Namespaces: 1, Runs: 1, Rate: 1, Seed: 15})
	if err := api.EnsureServiceAccount(t.Context(), l.Namespaces()[0], "default"); err != nil {
		t.Fatal(err)
	}
	if err := l.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), l.Namespaces()[0]) {
		t.Errorf("got %v, want the namespace in the way", err)
	}
	if err := l.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := api.Client.CoreV1().Namespaces().Get(t.Context(), l.Namespaces()[0], metav1.GetOptions{}); err != nil {
		t.Errorf("the others' namespace: %v", err)
	}
}

// hurried lets a hundred seconds pass in each.
type hurried struct {
	clock.RealClock
	began time.Time
}

func (h hurried) Now() time.Time                       { return h.began.Add(100 * time.Since(h.began)) }
func (h hurried) Since(t time.Time) time.Duration      { return h.Now().Sub(t) }
func (h hurried) NewTimer(d time.Duration) clock.Timer { return h.RealClock.NewTimer(d / 100) }

func TestALoadForcesNoNamespaceUnlessTold(t *testing.T) {
	t.Parallel()
	cfg := load.Config{REST: api.Admin, Namespaces: 2, Runs: 1, Rate: 1, Seed: 17, Clock: hurried{began: time.Now()}}
	forced := newLoad(t, cfg)
	if err := forced.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := load.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = l.Remove(t.Context())
	for _, name := range l.Namespaces() {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "NoController") {
			t.Errorf("got %v, want it to name %s and what to do", err, name)
		}
		held, err := api.Client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || held.DeletionTimestamp == nil || len(held.Spec.Finalizers) == 0 {
			t.Errorf("%s: got %v, %v; want it deleted, and left to the controller", name, held, err)
		}
	}
	if err := forced.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	for _, name := range l.Namespaces() {
		if _, err := api.Client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v, want it gone", name, err)
		}
	}
}

func TestALoadLeavesNothingRunning(t *testing.T) {
	l := newLoad(t, load.Config{Namespaces: 1, Runs: 2, Rate: 100, Seed: 16})
	if err := l.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	until(t, l, "it is at work", func() bool { return l.Stats().Changes > 10 })
	goleak.VerifyNone(t, before)
}
