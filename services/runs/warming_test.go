package runs

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/services/runs/results"
)

// warmUp warms a world's replica as it is after a start.
func (w *world) warmUp() {
	w.t.Helper()
	warmer, err := newWarmer(Config{Warm: true}, w.server, nil, prometheus.NewRegistry())
	if err != nil {
		w.t.Fatal(err)
	}
	warmer.Run(w.t.Context())
}

// fleet is a world with runs of three apps, and namespaces of none.
func fleet(t *testing.T) *world {
	t.Helper()
	w := stocked(t)
	for i, name := range []string{"app-boarding-api-cicd", "infra-postgres-cicd", "kube-system", "app-shop-pr-7", "other-cicd"} {
		w.cluster.add(name, "uid-"+name, w.now.AddDate(0, -1, 0))
		w.archive.runs = append(w.archive.runs, pipelineRun(name, 10+i, w.now.Add(-2*time.Hour)))
	}
	going := w.cluster.made[shopNamespace]
	going.Name, going.UID, going.DeletionTimestamp = "app-going-cicd", "uid-going", &metav1.Time{Time: w.now}
	w.cluster.made[going.Name] = going
	return w
}

// rule: R047, R048
func TestAfterAStartEveryAppsLastDaysAreRead(t *testing.T) {
	w := fleet(t)
	made := w.now.Add(-3 * time.Hour)
	w.cluster.add("infra-postgres-cicd", "uid-infra-postgres-cicd", made) // younger than the days that are read
	w.warmUp()
	// One app's requests follow the other's, and nobody else's are made.
	since := w.now.Add(-168 * time.Hour).Format(time.RFC3339)
	want := []string{
		"runs of app-boarding-api-cicd since " + since, "tasks of app-boarding-api-cicd",
		"runs of app-shop-cicd since " + since, "tasks of app-shop-cicd",
		"runs of infra-postgres-cicd since " + made.Format(time.RFC3339), "tasks of infra-postgres-cicd",
	}
	got := w.requests()
	for i, ask := range got {
		if before, _, ok := strings.Cut(ask, " since "); ok && strings.HasPrefix(ask, "tasks of") {
			got[i] = before
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("it asks for\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := w.reads(func() { w.body(oneList, ""); w.body(oneRun, "") }); n != 0 {
		t.Errorf("the first calls make %d requests", n)
	}
}

// What warming keeps is what its reading would have given.
func TestAWarmedListIsTheSameToTheByte(t *testing.T) {
	w := newWorld(t)
	w.ago(slices.Collect(func(yield func(time.Duration) bool) {
		for i := range defaultLimit + 20 {
			if !yield(time.Duration(i) * time.Minute) {
				return
			}
		}
	})...)
	read, tag := w.body(oneList, "")
	w.server.documents = keep(t, nil)
	w.warmUp()
	if n := w.reads(func() {
		if warmed, other := w.body(oneList, ""); warmed != read || other != tag {
			t.Errorf("warmed it is\n%s\nand read\n%s", warmed, read)
		}
	}); n != 0 {
		t.Errorf("%d requests are made", n)
	}
}

func TestAWarmedRunIsTheSameToTheByte(t *testing.T) {
	w := stocked(t)
	at := w.now.Add(-time.Hour)
	w.archive.tasks = nil // of one moment, in another order than getRun's
	for _, m := range []int{2, 3, 1} {
		w.archive.tasks = append(w.archive.tasks, taskRun(shopNamespace, 1, m, at))
	}
	read, tag := w.body(oneRun, "")
	w.server.documents = keep(t, nil)
	w.warmUp()
	if n := w.reads(func() {
		if warmed, other := w.body(oneRun, ""); warmed != read || other != tag {
			t.Errorf("warmed it is\n%s\nand read\n%s", warmed, read)
		}
	}); n != 0 {
		t.Errorf("%d requests are made", n)
	}
}

func TestWarmingKeepsNoRunThatMayNotBeWhole(t *testing.T) {
	ways := halves()
	ways["one with a TaskRun that cannot be read"] = func(w *world) { w.archive.tasks = append(w.archive.tasks, results.Record{}) }
	for name, change := range ways {
		t.Run(name, func(t *testing.T) {
			w := stocked(t)
			change(w)
			w.warmUp()
			if n := w.reads(func() { w.body(oneList, "") }); n != 0 {
				t.Errorf("the list makes %d requests", n)
			}
			if n := w.reads(func() { w.get(oneRun, about("getRun")) }); n == 0 {
				t.Error("it is kept")
			}
		})
	}
}

// rule: R048
func TestNobodyWaitsForTheWarming(t *testing.T) {
	w := fleet(t)
	archive := w.slowly()
	warmer, err := newWarmer(Config{Warm: true}, w.server, nil, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var warming sync.WaitGroup
	warming.Go(func() { warmer.Run(ctx) })
	<-archive.began // and does not end
	// An app that is read later is answered now.
	w.server.archive = w.archive
	if got := w.get(oneRun, about("getRun")); got.Code != http.StatusOK {
		t.Errorf("a call during the warming: %d %s", got.Code, got.Body)
	}
	stop()
	close(archive.gate)
	warming.Wait()
}

// rule: R047
func TestOneReplicaWarmsForAll(t *testing.T) {
	m := miniredis.RunT(t)
	w := fleet(t)
	second := *w.server
	var all sync.WaitGroup
	for _, s := range []*server{w.server, &second} {
		redis := redisOf(t, m)
		s.documents = keep(t, redis)
		warmer, err := newWarmer(Config{Warm: true}, s, redis, prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { warmer.Run(t.Context()) })
	}
	all.Wait()
	if asked := w.requests(); len(asked) != 6 { // as one alone
		t.Errorf("two replicas ask for %q", asked)
	}
	// Both have what one read.
	for _, s := range []*server{w.server, &second} {
		w.server = s
		if n := w.reads(func() { w.body(oneList, ""); w.body(oneRun, "") }); n != 0 {
			t.Errorf("the first calls make %d requests", n)
		}
	}
}

func TestAReplicaWarmsForItselfWhileRedisIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fleet(t)
		redis, err := cache.Options{URL: "redis://127.0.0.1:1/", Time: time.Second}.Open(backend, prometheus.NewRegistry(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = redis.Close() }()
		w.server.documents = keep(t, redis)
		warmer, err := newWarmer(Config{Warm: true}, w.server, redis, prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		warmer.Run(t.Context())
		if took := time.Since(began); took < warmPatience || took > 2*warmPatience {
			t.Errorf("it took %s", took)
		}
		if n := w.reads(func() { w.body(oneList, ""); w.body(oneRun, "") }); n != 0 {
			t.Errorf("the first calls make %d requests", n)
		}
	})
}

func TestWarmingCanBeSwitchedOff(t *testing.T) {
	w := fleet(t)
	warmer, err := newWarmer(Config{}, w.server, nil, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	warmer.Run(t.Context())
	if len(w.requests()) != 0 || len(w.cluster.asked) != 0 {
		t.Errorf("it asks for %q and %q", w.requests(), w.cluster.asked)
	}
	w.cluster.fault = errors.New("away")
	if _, err := w.server.namespaces.apps(t.Context()); err == nil {
		t.Error("a cluster that is away has no apps")
	}
}

func TestAnAppOfWhichNothingIsKeptIsNotWarmed(t *testing.T) {
	w := stocked(t)
	w.server.documents = keep(t, nil, func(c *Config) { c.CacheBytes = 1 })
	if err := w.server.warm(t.Context(), scopeOfShop); err == nil {
		t.Error("it counts as warmed")
	}
}
