package streams_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// resources are those of kinds.
var resources = [2]string{"pipelineruns", "taskruns"}

func resource(c dynamic.Interface, i int, namespace string) dynamic.ResourceInterface {
	return c.Resource(schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: resources[i]}).Namespace(namespace)
}

// inCluster is what the cluster holds of a namespace, and as of which versions.
func inCluster(ctx context.Context, c dynamic.Interface, namespace string) (state, position, error) {
	all, at := state{}, position{}
	for i, kind := range kinds {
		l, err := resource(c, i, namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, at, err
		}
		at[i] = number(l.GetResourceVersion())
		for _, o := range l.Items {
			unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
			raw, err := json.Marshal(o.Object)
			if err != nil {
				return nil, at, err
			}
			all[key{kind, o.GetName()}] = version{o.GetResourceVersion(), raw}
		}
	}
	return all, at, nil
}

// ledger is what the API server itself says happened in a namespace since a position.
type ledger struct {
	mu    sync.Mutex
	moves [2][]entry // by kind
	torn  error      // why it is not complete
}

// entry is a move and when it was made.
type entry struct {
	move

	at uint64
}

// keep writes down what happens from a position on until the returned function is called.
func keep(t *testing.T, c dynamic.Interface, namespace string, from position) (l *ledger, end func()) {
	t.Helper()
	l = &ledger{}
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range kinds {
		work.Go(func() { l.follow(ctx, resource(c, i, namespace), i, from[i]) })
	}
	return l, func() { cancel(); work.Wait() }
}

// follow writes down what happens to a kind. An API server that is busy ends the watches of those who are slow: the next one
// goes on where the last one was.
func (l *ledger) follow(ctx context.Context, r dynamic.ResourceInterface, i int, from uint64) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for ctx.Err() == nil {
		w, err := r.Watch(ctx, metav1.ListOptions{ResourceVersion: fmt.Sprint(from)})
		if err == nil {
			for e := range w.ResultChan() {
				from = max(from, l.write(i, e))
			}
			w.Stop()
		} else if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			l.tear(err)
			return
		}
		<-again.C
	}
}

// write writes down an event, and gives its version.
func (l *ledger) write(i int, e watch.Event) uint64 {
	o, ok := e.Object.(*unstructured.Unstructured)
	if !ok || e.Type == watch.Error {
		l.tear(fmt.Errorf("a watch brought %v", e))
		return 0
	}
	m := move{key: key{kinds[i], o.GetName()}, version: o.GetResourceVersion()}
	at := number(m.version)
	if e.Type == watch.Deleted {
		m.version = ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moves[i] = append(l.moves[i], entry{m, at})
	return at
}

func (l *ledger) tear(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.torn = err
}

// whole says why the ledger is not complete, if it is not.
func (l *ledger) whole() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.torn
}

// upTo wants the ledger to lead from one state to another, if it is whole.
func (l *ledger) upTo(before, after state) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn != nil {
		return nil
	}
	now := before.clone()
	for _, entries := range l.moves {
		for _, e := range entries {
			if e.version == "" {
				delete(now, e.key)
			} else {
				now[e.key] = version{number: e.version}
			}
		}
	}
	if d := now.differs(after); d != "" {
		return fmt.Errorf("the ledger is not there yet: %s", d)
	}
	return nil
}

// misses compares the moves that a viewer got after a position with those that were made.
func (l *ledger) misses(base position, got []move) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, kind := range kinds {
		var want, have []move
		for _, e := range l.moves[i] {
			if e.at > base[i] {
				want = append(want, e.move)
			}
		}
		for _, m := range got {
			if m.kind == kind {
				have = append(have, m)
			}
		}
		for n := range max(len(want), len(have)) {
			switch {
			case n >= len(have):
				return fmt.Errorf("%d of %d changes of %ss came, not %v", len(have), len(want), kind, want[n])
			case n >= len(want):
				return fmt.Errorf("a change too many: %v", have[n])
			case have[n] != want[n]:
				return fmt.Errorf("change %d of %d of %ss is %v, not %v", n+1, len(want), kind, have[n], want[n])
			}
		}
	}
	return nil
}
