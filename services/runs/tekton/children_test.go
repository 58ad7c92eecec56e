package tekton_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"hangar.io/glidepath/services/runs/tekton"
)

func TestARunNamesTheTaskRunsThatItMade(t *testing.T) {
	for name, tc := range map[string]struct {
		status string
		want   []string
		ok     bool
	}{
		"none":                       {`{}`, nil, true},
		"null":                       {`{"childReferences":null,"taskRuns":null}`, nil, true},
		"two":                        {`{"childReferences":[{"kind":"TaskRun","name":"b","apiVersion":"tekton.dev/v1"},{"kind":"TaskRun","name":"a"}]}`, []string{"a", "b"}, true},
		"what is no TaskRun":         {`{"childReferences":[{"kind":"CustomRun","name":"a"},{"kind":"Run","name":"b"},{"kind":"PipelineRun","name":"c"}]}`, nil, true},
		"one of no kind":             {`{"childReferences":[{"name":"a"}]}`, []string{"a"}, true},
		"one without a name":         {`{"childReferences":[{"kind":"TaskRun"}]}`, nil, false},
		"those of a run of old":      {`{"taskRuns":{"b":{"pipelineTaskName":"x","status":{"steps":[]}},"a":null}}`, []string{"a", "b"}, true},
		"both":                       {`{"childReferences":[{"kind":"TaskRun","name":"a"}],"taskRuns":{"b":{}}}`, []string{"a", "b"}, true},
		"no list of references":      {`{"childReferences":{"a":[]}}`, nil, false},
		"a reference that is none":   {`{"childReferences":[7]}`, nil, false},
		"TaskRuns that are no names": {`{"taskRuns":["a"]}`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			names, ok := decode(t, `{"status":`+tc.status+`}`).Named()
			slices.Sort(names)
			if ok != tc.ok || ok && !slices.Equal(names, tc.want) {
				t.Errorf("got %q, %t", names, ok)
			}
		})
	}
}

// What an explanation is made of outlives being written and read.
func TestAFailureIsTheSameWhenItIsReadAgain(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "failed.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := decode(t, string(raw)).Failure()
	if len(want.Status.Steps) == 0 || want.Ended().Message == "" || want.Status.Started.IsZero() || want.Spec.Task.Name == "" || len(want.Metadata.Labels) != 1 {
		t.Fatalf("it has %+v", want)
	}
	written, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tekton.Decode(written); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}
