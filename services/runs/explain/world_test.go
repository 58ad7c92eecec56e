package explain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/services/runs/explain"
	"hangar.io/glidepath/services/runs/tekton"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// contract is the catalogue that the API serves.
func contract(t testing.TB) *explain.Catalogue {
	t.Helper()
	c, err := explain.FromContract(api.Contract())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// object is a TaskRun as it is archived.
type object map[string]any

// taskRun is one whose steps exited with these codes, name=code, in order. It
// failed when one of them did.
func taskRun(name string, steps ...string) object {
	var states []any
	status, message := "True", "All Steps have completed executing"
	for _, s := range steps {
		step, code, _ := strings.Cut(s, "=")
		var exit int
		if _, err := fmt.Sscan(code, &exit); err != nil {
			exit = 0
		}
		if exit != 0 && status == "True" {
			status, message = "False", fmt.Sprintf("%q exited with code %d", "step-"+step, exit)
		}
		states = append(states, object{"name": step, "container": "step-" + step, "terminated": object{"exitCode": exit, "reason": "Completed"}})
	}
	return object{
		"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
		"metadata": object{"name": name, "uid": "uid-" + name, "labels": object{"tekton.dev/pipelineTask": strings.TrimPrefix(name, "run-")}},
		"status": object{
			"startTime": "2026-08-03T09:14:05Z", "steps": states,
			"conditions": []any{object{"type": "Succeeded", "status": status, "reason": "x", "message": message}},
		},
	}
}

// with changes the condition of a TaskRun.
func (o object) with(status, message string) object {
	o["status"].(object)["conditions"] = []any{object{"type": "Succeeded", "status": status, "message": message}}
	return o
}

func (o object) bytes(t testing.TB) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// archived gives TaskRuns as they are read out of the archive.
func archived(t testing.TB, taskRuns ...object) []*tekton.Object {
	t.Helper()
	all := make([]*tekton.Object, len(taskRuns))
	for i, tr := range taskRuns {
		var err error
		if all[i], err = tekton.Decode(tr.bytes(t)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// logsOf gives logs by name of the TaskRun.
func logsOf(logs map[string]string) explain.Logs {
	return func(_ context.Context, uid string) (io.ReadCloser, error) {
		log, ok := logs[strings.TrimPrefix(uid, "uid-")]
		if !ok {
			return nil, explain.ErrNoLog
		}
		return io.NopCloser(strings.NewReader(log)), nil
	}
}

// explainLog explains one TaskRun whose only step failed with this log.
func explainLog(t testing.TB, c *explain.Catalogue, log string) explain.Entry {
	t.Helper()
	entries, err := c.Explain(t.Context(), archived(t, taskRun("run-build", "build=1")), logsOf(map[string]string{"run-build": log}))
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	return entries[0]
}

// reading gives the same log for every TaskRun.
func reading(log func() io.Reader) explain.Logs {
	return func(context.Context, string) (io.ReadCloser, error) { return io.NopCloser(log()), nil }
}

// endless repeats a line.
func endless(line string) io.Reader { return &repeated{line: line} }

type repeated struct {
	line string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		copied := copy(p[n:], r.line[r.at:])
		n += copied
		r.at = (r.at + copied) % len(r.line)
	}
	return n, nil
}
