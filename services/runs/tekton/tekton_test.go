package tekton_test

import (
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/services/runs/tekton"
)

func decode(t *testing.T, text string) *tekton.Object {
	t.Helper()
	o, err := tekton.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheConditionAloneSaysHowARunEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		want   tekton.Outcome
	}{
		"no status":                                  {`{}`, tekton.Unfinished},
		"a status that is null":                      {`{"status":null}`, tekton.Unfinished},
		"a completion time and no condition":         {`{"status":{"completionTime":"2026-11-30T12:00:00Z"}}`, tekton.Unfinished},
		"another condition before it":                {`{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Succeeded","status":"False","reason":"Failed"}]}}`, tekton.Failed},
		"Unknown, with the reason of an end":         {`{"status":{"conditions":[{"type":"Succeeded","status":"Unknown","reason":"Cancelled"}]}}`, tekton.Unfinished},
		"cancelled, and succeeded all the same":      {`{"spec":{"status":"CancelledRunFinally"},"status":{"conditions":[{"type":"Succeeded","status":"True"}]}}`, tekton.Succeeded},
		"cancelled, and failed all the same":         {`{"spec":{"status":"Cancelled"},"status":{"conditions":[{"type":"Succeeded","status":"False","reason":"Failed"}]}}`, tekton.Failed},
		"a reason of old":                            {`{"status":{"conditions":[{"type":"Succeeded","status":"False","reason":"PipelineRunCancelled"}]}}`, tekton.Cancelled},
		"a reason that nobody knows":                 {`{"status":{"conditions":[{"type":"Succeeded","status":"False","reason":"SomethingNew"}]}}`, tekton.Failed},
		"a reason that is a timeout by another name": {`{"status":{"conditions":[{"type":"Succeeded","status":"False","reason":"PipelineRunTimeout","message":"cancelled"}]}}`, tekton.TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decode(t, tc.object).Outcome(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatHasFailedIsOneDecision(t *testing.T) {
	for outcome, want := range map[tekton.Outcome]bool{
		tekton.Unfinished: false, tekton.Succeeded: false, tekton.Failed: true, tekton.Cancelled: true, tekton.TimedOut: true,
	} {
		if got := outcome.Failed(); got != want {
			t.Errorf("%q: %t", outcome, got)
		}
	}
}

func TestWhatARunSaysItWasFor(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		want   tekton.Facts
	}{
		"nothing": {`{"metadata":{"name":"a"}}`, tekton.Facts{}},
		"all of it": {
			`{"metadata":{"name":"a","labels":{"hangar.io/flow":"ci","platform.io/flow":"old","pipelinesascode.tekton.dev/sha":"abc"},
			"annotations":{"hangar.io/initiator":"ada","pipelinesascode.tekton.dev/branch":"refs/heads/fix/1","pipelinesascode.tekton.dev/sender":"bob"}},
			"spec":{"pipelineRef":{"name":"build"},"params":[{"name":"revision","value":"main"}]}}`,
			tekton.Facts{Pipeline: "build", Flow: "ci", Revision: "abc", Branch: "fix/1", Initiator: "ada"},
		},
		"from before the platform's new name": {`{"metadata":{"labels":{"platform.io/flow":"ci"}}}`, tekton.Facts{Flow: "ci"}},
		"a Pipeline that a resolver found":    {`{"metadata":{"name":"a","labels":{"tekton.dev/pipeline":"build"}},"spec":{"pipelineRef":{"resolver":"cluster"}}}`, tekton.Facts{Pipeline: "build"}},
		"a Pipeline of its own":               {`{"metadata":{"name":"a","labels":{"tekton.dev/pipeline":"a"}}}`, tekton.Facts{}},
		"a revision among the parameters":     {`{"spec":{"params":[{"name":"files","value":["a"]},{"name":"revision","value":"abc"}]}}`, tekton.Facts{Revision: "abc"}},
		"a revision that is a list":           {`{"spec":{"params":[{"name":"revision","value":["abc"]}]}}`, tekton.Facts{}},
		"a branch that fits into a label":     {`{"metadata":{"labels":{"pipelinesascode.tekton.dev/branch":"main","pipelinesascode.tekton.dev/sender":"bob"}}}`, tekton.Facts{Branch: "main", Initiator: "bob"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decode(t, tc.object).Facts(); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestATaskRunBelongsToTheRunThatOwnsIt(t *testing.T) {
	run := tekton.Metadata{Name: "run", UID: "uid"}
	for name, tc := range map[string]struct {
		metadata string
		want     bool
	}{
		"its owner is the run":          {`{"ownerReferences":[{"kind":"Other","uid":"x"},{"apiVersion":"tekton.dev/v1","kind":"PipelineRun","uid":"uid"}]}`, true},
		"its owner is another":          {`{"ownerReferences":[{"apiVersion":"tekton.dev/v1beta1","kind":"PipelineRun","uid":"x"}],"labels":{"tekton.dev/pipelineRunUID":"uid"}}`, false},
		"its label says so":             {`{"labels":{"tekton.dev/pipelineRunUID":"uid"}}`, true},
		"its label names a namesake":    {`{"labels":{"tekton.dev/pipelineRunUID":"x","tekton.dev/pipelineRun":"run"}}`, false},
		"its label has the name alone":  {`{"labels":{"tekton.dev/pipelineRun":"run"}}`, true},
		"its label has another name":    {`{"labels":{"tekton.dev/pipelineRun":"other"}}`, false},
		"nothing says whose it is":      {`{}`, false},
		"its owner is of another group": {`{"ownerReferences":[{"apiVersion":"example.org/v1","kind":"PipelineRun","uid":"uid"}]}`, false},
		"it is owned by no PipelineRun": {`{"ownerReferences":[{"kind":"CustomRun","uid":"uid"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decode(t, `{"metadata":`+tc.metadata+`}`).BelongsTo(run); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestATimeThatIsNoneIsAbsent(t *testing.T) {
	o := decode(t, `{"status":{"startTime":"2026-11-30T13:00:00+01:00","completionTime":"21-05-2019"}}`)
	if want := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC); !o.Status.Started.Equal(want) || o.Status.Started.Location() != time.UTC || !o.Status.Completed.IsZero() {
		t.Errorf("got %v and %v", o.Status.Started, o.Status.Completed)
	}
}

func TestAnErrorSaysNothingOfWhatWasRead(t *testing.T) {
	for _, raw := range []string{`{"metadata":"hunter2"}`, `{"status":5551234}`, `{"metadata":{"name":hunter2}}`, `["hunter2"]`, `"hunter2`, ``} {
		_, err := tekton.Decode([]byte(raw))
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "5551234") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
