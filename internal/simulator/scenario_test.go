package simulator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/simulator/life"
)

func samples(t *testing.T, seed uint64, count int) []life.Sample {
	t.Helper()
	s, err := New(Config{REST: &rest.Config{Host: "https://api.example"}, Namespaces: []string{"app-shop-cicd", "infra-postgres-cicd"}, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]life.Sample, count)
	for i := range list {
		list[i] = s.sample(i)
	}
	return list
}

func TestOneSeedGivesOneOrderOfRuns(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(samples(t, 1, 50), samples(t, 1, 50)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(samples(t, 1, 50), samples(t, 2, 50)) {
		t.Error("two seeds give one order")
	}
}

func TestARoundHasEveryLifeInNamespacesByTurns(t *testing.T) {
	t.Parallel()
	round := len((&Simulator{}).scenarios())
	list := samples(t, 3, 2*round)
	for _, half := range [][]life.Sample{list[:round], list[round:]} {
		outcomes := map[life.Outcome]int{}
		for _, sample := range half {
			outcomes[sample.Fate.Outcome]++
		}
		want := map[life.Outcome]int{
			life.Succeed: 7, life.Fail: 4, life.Flaky: 1, life.Hang: 3, life.Cancel: 1, life.CancelFn: 1, life.StopFn: 1, life.Unpend: 1,
		}
		if diff := cmp.Diff(want, outcomes); diff != "" {
			t.Error(diff)
		}
	}
	if list[0].App != "shop" || list[1].App != "postgres" || list[2].Namespace != list[0].Namespace {
		t.Errorf("the first runs are for %s, %s and %s", list[0].App, list[1].App, list[2].App)
	}
}
