package runs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
)

// app gives the claims of a caller of another app than the shop, which it makes.
func (w *world) app(n int) *identity.Claims {
	name := fmt.Sprintf("app-other-%d-cicd", n)
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	w.cluster.add(name, "uid-"+name, w.now.AddDate(-1, 0, 0))
	claims := about("listRuns")
	claims.Namespace, claims.NamespaceUID = name, "uid-"+name
	return claims
}

// An app whose full lists do not come takes one turn and few of the places to wait.
func TestSlowListsOfOneAppAreInNobodyElsesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stocked(t)
		archive := &still{archived: w.archive, gate: make(chan struct{})}
		w.server.archive = archive
		var all sync.WaitGroup
		for i := range heavyReads + heavyWaits {
			all.Go(func() { w.get(fmt.Sprintf("%s?view=full&sinceHours=%d", oneList, i+1), about("listRuns")) })
		}
		synctest.Wait()
		if n := archive.reading.Load(); n != 1 {
			t.Errorf("%d full lists of one app are read", n)
		}
		other := *w.server
		other.archive = w.archive // its own is not slow
		mine := &world{t: t, now: w.now, archive: w.archive, cluster: w.cluster, server: &other}
		start := time.Now()
		if got := mine.get(oneList+"?view=full", w.app(1)); got.Code != http.StatusOK || time.Since(start) != 0 {
			t.Errorf("another app's list: %d %s after %s", got.Code, got.Body, time.Since(start))
		}
		close(archive.gate)
		all.Wait()
	})
}

// Callers who leave do not end what they began.
func TestReadsOfOneAppAreInNobodyElsesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stocked(t)
		archive := w.slowly()
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range maxReads {
			all.Go(func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/apps/shop/runs/"+uidOf(100+i), nil)
				defer func() { _ = recover() }() // it is not answered
				w.send(r, about("getRun"))
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		w.refused(w.get(oneRun, about("getRun")), problem.Busy)
		w.server.archive = w.archive
		if got := w.get(oneList, w.app(1)); got.Code != http.StatusOK {
			t.Errorf("another app's list: %d %s", got.Code, got.Body)
		}
		close(archive.gate)
		synctest.Wait()
		if got := w.get(oneRun, about("getRun")); got.Code != http.StatusOK {
			t.Errorf("afterwards: %d %s", got.Code, got.Body)
		}
		if r := w.server.documents.reads; r.begun != 0 || len(r.queues) != 0 {
			t.Errorf("%d reads and %d queues are left", r.begun, len(r.queues))
		}
	})
}

func TestTurnsAreGivenBackByThoseWhoWaitInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1, 4, 1)
		done, err := turns.begin(t.Context(), "a", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		for name, tc := range map[string]struct {
			ctx  context.Context
			of   string
			want error
		}{
			"one of the same namespace": {t.Context(), "a", cache.ErrBusy},
			"one of another":            {t.Context(), "b", cache.ErrBusy},
			"one whose call ended":      {gone, "b", context.Canceled},
		} {
			if _, err := turns.begin(tc.ctx, tc.of, time.Second); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		done()
		if turns.begun != 0 || len(turns.queues) != 0 || len(turns.now) != 0 {
			t.Errorf("%d are begun in %d queues", turns.begun, len(turns.queues))
		}
	})
}
