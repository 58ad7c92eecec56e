package archive_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// app is an app whose namespace is made again and again.
type app struct {
	name, namespace string
	gens            []*generation
}

// generation is an app from the making of its namespace to the making of the next one.
type generation struct {
	app    *app
	number int
	made   int // runs so far, which have the names of those of other generations
	runs   []*run
	open   []*run // those of which the archive does not hold all yet
	tests  []*execution

	// It was being made from began on, and there from there on; everybody knew it from known on. From ends on it was being
	// deleted.
	began, there, known, ends time.Time
}

func (a *app) now() *generation { return a.gens[len(a.gens)-1] }

// next is the generation after g; nil for the last one.
func (g *generation) next() *generation {
	if g.number+1 < len(g.app.gens) {
		return g.app.gens[g.number+1]
	}
	return nil
}

// ever says whether calls of the window may have been about this generation, and always whether they were about no other: until
// the next one is known, callers are taken to this one.
func (g *generation) ever(in window) bool {
	next := g.next()
	return !g.began.After(in.to) && (next == nil || !next.known.Before(in.from))
}

func (g *generation) always(in window) bool { return !g.known.After(in.from) && !g.ends.Before(in.to) }

// inFleet says whether lists of the fleet that were read in the window may show runs of this generation, and mustInFleet
// whether they do. While there is no namespace of the name, they show whatever was in one.
func (g *generation) inFleet(in window) bool {
	if g.began.After(in.to) {
		return false
	}
	next := g.next()
	if next == nil || !next.there.Before(in.from) {
		return true
	}
	for _, later := range g.app.gens[g.number+1:] {
		if !later.ends.After(in.to) && (later.next() == nil || !later.next().there.Before(in.from)) {
			return true
		}
	}
	return false
}

func (g *generation) mustInFleet(in window) bool {
	return !g.there.After(in.from) && !g.ends.Before(in.to)
}

// start makes the namespace of a new generation, with a run that was always there.
func (w *world) start(ctx context.Context, a *app) (*generation, error) {
	w.mu.Lock()
	g := &generation{app: a, number: len(a.gens), began: time.Now(), there: forever, known: forever, ends: forever}
	a.gens = append(a.gens, g)
	w.mu.Unlock()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
	for {
		_, err := apiServer.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err == nil {
			break
		}
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("making %s: %w", a.namespace, err)
		}
	}
	w.mu.Lock()
	g.there = time.Now()
	w.mu.Unlock()
	return g, w.whole(w.begin(g, true, "", 1), 1)
}

// anew deletes an app and makes it again, and returns when everybody knows. The archive keeps what it holds.
func (w *world) anew(t *testing.T, a *app) {
	t.Helper()
	w.still.Lock()
	defer w.still.Unlock()
	old := a.now()
	// Times of creation are whole seconds: what was made in the same one cannot be told apart.
	last := time.Now().Truncate(time.Second)
	eventually(t, "the second is over", func() error {
		if !time.Now().Truncate(time.Second).After(last) {
			return fmt.Errorf("it is still %s", last)
		}
		return nil
	})
	w.mu.Lock()
	old.ends = time.Now()
	w.mu.Unlock()
	if err := apiServer.DeleteNamespace(t.Context(), a.namespace); err != nil {
		t.Fatal(err)
	}
	g, err := w.start(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	w.know(t, g)
}

// know waits until an app is known to be the new one.
func (w *world) know(t *testing.T, g *generation) {
	t.Helper()
	eventually(t, g.app.name+" is known", func() error {
		err := w.prober.expects(t.Context(), g.runs[0].path(), http.StatusOK)
		if err == nil && g.number > 0 {
			err = w.prober.expects(t.Context(), g.app.gens[g.number-1].runs[0].path(), http.StatusNotFound)
		}
		return err
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	g.known = time.Now()
}
