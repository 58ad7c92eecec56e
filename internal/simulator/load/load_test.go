package load

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestNewNamesEveryFaultOfItsConfiguration(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Namespaces: 0, Runs: -1, Rate: -2, ObjectBytes: -3, Workers: 1000})
	for _, want := range []string{"no REST", "0 namespaces", "-1 runs a namespace", "-2 changes a second", "-3 bytes", "1000 workers"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

func TestTheSeedDecidesTheRuns(t *testing.T) {
	t.Parallel()
	names := func(seed uint64) (all []string) {
		l, err := New(Config{REST: &rest.Config{Host: "https://127.0.0.1:1"}, Namespaces: 1, Runs: 20, Rate: 1, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for slot := range 20 {
			sample := l.sample("app-x-cicd", slot, 0)
			world, steps, err := l.rehearse(sample.PipelineRun(), -1)
			if err != nil || !world.Run.Status.Conditions.Done() || steps < 5 {
				t.Fatalf("%s: %v after %d steps, ended %v", sample.Name, err, steps, world.Run.Status.Conditions)
			}
			for _, task := range world.TaskRuns {
				if !task.Status.Conditions.Done() {
					t.Errorf("%s does not end", task.Name)
				}
			}
			all = append(all, sample.Name+" "+sample.Fate.String())
		}
		return all
	}
	first, again, other := names(1), names(1), names(2)
	if strings.Join(first, ",") != strings.Join(again, ",") {
		t.Errorf("the same seed gives %v and %v", first, again)
	}
	if strings.Join(first, ",") == strings.Join(other, ",") {
		t.Errorf("another seed gives the same: %v", first)
	}
}
