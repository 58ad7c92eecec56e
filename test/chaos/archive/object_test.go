package archive_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// object is a PipelineRun or TaskRun at one of its versions; nil is none.
type object struct {
	value  []byte // as it is archived
	shown  any    // as it is answered
	status string // as it is answered; empty while it goes on
	row    map[string]any
}

func ended(o *object) bool  { return o != nil && o.status != "" }
func failed(o *object) bool { return ended(o) && o.status != "succeeded" }
func there(o *object) bool  { return o != nil }

// outcomes are how runs end, by the reason of their condition.
var outcomes = []struct{ condition, reason, status string }{
	{"True", "Succeeded", "succeeded"},
	{"False", "Failed", "failed"},
	{"True", "Completed", "succeeded"},
	{"False", "PipelineRunTimeout", "timedOut"},
	{"False", "Cancelled", "cancelled"},
}

// goesOn is the outcome of what has none yet.
const goesOn = -1

// padding is what makes an object of some size, so that an answer breaks off within one.
var padding = strings.Repeat("boarding pass ", 60)

// object gives a PipelineRun as it is at a version.
func (r *run) object(number, outcome int) (*object, error) {
	meta := map[string]any{"labels": map[string]any{"tekton.dev/pipeline": "build"}}
	spec := map[string]any{"pipelineRef": map[string]any{"name": "build"}, "params": []any{map[string]any{"name": "padding", "value": padding}}}
	o, status, err := r.make("PipelineRun", r.name, r.uid, number, outcome, meta, spec)
	if err != nil || outcome == goesOn {
		return o, err
	}
	o.row = map[string]any{
		"result": r.uid, "name": r.name, "pipeline": "build", "status": o.status, "reason": outcomes[outcome].reason, "message": message(r.uid, number),
		"createdAt": stamp(r.created), "startTime": status["startTime"], "completionTime": status["completionTime"], "durationSeconds": took.Seconds(),
	}
	return o, nil
}

// object gives a TaskRun as it is at a version.
func (t *task) object(number, outcome int) (*object, error) {
	labels := map[string]any{"tekton.dev/pipelineTask": "unit", "tekton.dev/pipelineRun": t.run.name}
	meta := map[string]any{"labels": labels}
	if !t.named {
		labels["tekton.dev/pipelineRunUID"] = t.run.uid
		meta["ownerReferences"] = []any{map[string]any{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "uid": t.run.uid}}
	}
	o, _, err := t.run.make("TaskRun", t.name, t.uid, number, outcome, meta, map[string]any{"taskRef": map[string]any{"name": "unit"}})
	return o, err
}

// took is how long each run took.
const took = 10 * time.Minute

func (r *run) make(kind, name, uid string, number, outcome int, meta, spec map[string]any) (o *object, status map[string]any, err error) {
	// What has ended long ago is kept for days. The archive takes no offence at runs that ended before they were made.
	began := r.created
	if r.settled {
		began = began.Add(-3 * took)
	}
	meta["name"], meta["namespace"], meta["uid"], meta["creationTimestamp"] = name, r.gen.app.namespace, uid, stamp(r.created)
	meta["annotations"] = map[string]any{"version": fmt.Sprint(number)}
	status = map[string]any{"startTime": stamp(began)}
	o = &object{}
	condition := map[string]any{"type": "Succeeded", "status": "Unknown", "reason": "Running", "message": message(uid, number)}
	exit := 0
	if outcome != goesOn {
		end := outcomes[outcome]
		condition["status"], condition["reason"], o.status = end.condition, end.reason, end.status
		status["completionTime"] = stamp(began.Add(took))
		if end.condition == "False" {
			exit = 1
		}
	}
	status["conditions"] = []any{condition}
	if kind == "TaskRun" && outcome != goesOn {
		status["steps"] = []any{map[string]any{"name": "test", "container": "step-test", "terminated": map[string]any{"exitCode": exit}}}
	}
	whole := map[string]any{"kind": kind, "apiVersion": "tekton.dev/v1", "metadata": meta, "spec": spec, "status": status}
	if o.shown, err = throughJSON(whole); err != nil {
		return nil, nil, err
	}
	meta["managedFields"] = []any{map[string]any{"manager": "controller"}}
	o.value, err = json.Marshal(whole)
	return o, status, err
}

func throughJSON(v any) (out any, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(raw, &out)
	return out, err
}

// message is that of the condition of an object at a version. It holds the uid, by which an explanation is known.
func message(uid string, number int) string { return fmt.Sprintf("%s is at version %d", uid, number) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// logText is the log of a TaskRun at a version, of so many lines.
func logText(uid string, number, lines int) []byte {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "[test] %s line %d\n", logMark(uid, number), i)
	}
	fmt.Fprintf(&b, "[test] --- FAIL: TestLanding of %s\n[test] FAIL %[1]s\n", logMark(uid, number))
	return []byte(b.String())
}

// logMark is in every line of a log at a version.
func logMark(uid string, number int) string { return fmt.Sprintf("%s/%d", uid, number) }

// served is a log as the archive sends it: with a newline behind each piece that it is stored in.
func served(text []byte) string {
	const piece = 32 << 10
	var b strings.Builder
	for len(text) > 0 {
		n := min(len(text), piece)
		b.Write(text[:n])
		b.WriteByte('\n')
		text = text[n:]
	}
	return b.String()
}
