package explain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/services/runs/explain"
)

// own gives a catalogue of these failures, id and pattern in turn.
func own(t testing.TB, pairs ...string) *explain.Catalogue {
	t.Helper()
	var failures []any
	for i := 0; i < len(pairs); i += 2 {
		failures = append(failures, object{"id": pairs[i], "patterns": []string{pairs[i+1]}, "hint": "Do " + pairs[i]})
	}
	c, err := explain.FromContract(object{"knownFailures": failures}.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func explained(t *testing.T, c *explain.Catalogue, logs map[string]string, runs ...object) []explain.Entry {
	t.Helper()
	entries, err := c.Explain(t.Context(), archived(t, runs...), logsOf(logs))
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// rule: R296
func TestAnEntryIsAsTheSpecificationShowsIt(t *testing.T) {
	t.Parallel()
	const line = "error: change CHG0010035 for shop is in state '-5' with approval 'not requested' - not approved or scheduled. Ask for it."
	tr := taskRun("run-verify-change", "verify=1")
	tr["metadata"].(object)["name"] = "itsm-bh5bn-verify-change"
	entries := explained(t, contract(t), map[string]string{"run-verify-change": "[verify] looking up\n[verify] " + line + "\n"}, tr)
	got, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	hint, err := json.Marshal(contractFailures(t)[0]["hint"])
	if err != nil {
		t.Fatal(err)
	}
	evidence, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"taskRun":"itsm-bh5bn-verify-change","task":"verify-change","step":"verify",` +
		`"knownFailure":{"id":"ItsmChangeNotApproved","hint":` + string(hint) + `},"evidence":` + string(evidence) + `,"log":"archived"}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// rule: R012
func TestAFailureThatIsAboutAFieldSaysWhich(t *testing.T) {
	t.Parallel()
	c, err := explain.FromContract([]byte(`{"knownFailures":[{"id":"Gate","patterns":["gate shut"],"hint":"Open it.","field":"/governance/sast"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := explained(t, c, map[string]string{"run-scan": "the gate shut at 9\n"}, taskRun("run-scan", "scan=2"), taskRun("run-unit", "unit=0"))
	want := []explain.Entry{{
		TaskRun: "run-scan", Task: "scan", Step: "scan", Evidence: "the gate shut at 9", Log: explain.LogArchived,
		KnownFailure: &explain.KnownFailure{ID: "Gate", Hint: "Open it.", Field: "/governance/sast"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// rule: R293
func TestOnlyTheLogsOfFailedTaskRunsAreRead(t *testing.T) {
	t.Parallel()
	unfinished := taskRun("run-running", "a=1")
	unfinished["status"].(object)["conditions"] = []any{}
	runs := []object{
		taskRun("run-good", "a=0"), taskRun("run-late", "a=1"), taskRun("run-early", "a=1"), unfinished,
		taskRun("run-unknown", "a=1").with("Unknown", "still going"), taskRun("run-timeout", "a=0").with("False", "failed to finish"),
		// A step that may fail does not make its TaskRun fail.
		taskRun("run-continued", "a=1").with("True", "all done"),
	}
	runs[1]["status"].(object)["startTime"] = "2026-08-03T11:00:00Z"
	var mu sync.Mutex
	var read []string
	entries, err := contract(t).Explain(t.Context(), archived(t, runs...), func(ctx context.Context, uid string) (io.ReadCloser, error) {
		mu.Lock()
		defer mu.Unlock()
		read = append(read, uid)
		return nil, explain.ErrNoLog
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(read)
	if diff := cmp.Diff([]string{"uid-run-early", "uid-run-late", "uid-run-timeout"}, read); diff != "" {
		t.Errorf("logs that were read (-want +got):\n%s", diff)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.TaskRun)
	}
	// In the order in which they began.
	if diff := cmp.Diff([]string{"run-early", "run-timeout", "run-late"}, names); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// rule: R294
func TestTheStepIsTheFirstThatExitedNonZero(t *testing.T) {
	t.Parallel()
	c := own(t, "Boom", "boom", "Bang", "bang")
	log := "[fetch] boom from fetch\n[unit] bang from unit\n[report] boom from report\n"
	got := explained(t, c, map[string]string{"run-x": log}, taskRun("run-x", "fetch=0", "unit=3", "report=1"))
	if got[0].Step != "unit" || got[0].KnownFailure.ID != "Bang" || got[0].Evidence != "bang from unit" {
		t.Errorf("%+v", got[0])
	}
	// What another step printed is not this one's failure, in every form of a log.
	for name, log := range map[string]string{
		"as tkn prints it":  "[fetch] boom\n[unit] fine\n[unit] \n[report] boom\n",
		"out of Loki":       "container-step-fetch: message=boom\ncontainer-step-unit: message=fine\ncontainer-step-report: message=boom\n",
		"out of a bucket":   "step-fetch :-\nboom\nstep-unit :-\nfine\n\nstep-report :-\nboom\n",
		"with the init's":   "[prepare] boom\n[unit] fine\n[place-scripts] boom\n",
		"a long other line": "[fetch] " + strings.Repeat("x", 40<<10) + "boom\n[unit] fine\n",
		"a mesh's, tkn":     "[istio-init] boom\n[unit] fine\n",
		"a mesh's, Loki":    "container-istio-init: message=boom\ncontainer-step-unit: message=fine\n",
		"a sidecar's":       "sidecar-db :-\nboom\nstep-unit :-\nfine\n",
	} {
		got := explained(t, c, map[string]string{"run-x": log}, taskRun("run-x", "fetch=0", "unit=3", "report=1"))
		if got[0].KnownFailure != nil || got[0].Evidence != "fine" {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
	// A step of which the log says nothing has no lines.
	got = explained(t, c, map[string]string{"run-x": "[fetch] boom\n"}, taskRun("run-x", "fetch=0", "unit=3"))
	if got[0].KnownFailure != nil || got[0].Evidence != `"step-unit" exited with code 3` {
		t.Errorf("%+v", got[0])
	}
}

// A log has one marking. What looks like another one was printed by a step, as
// many tools print their own name in brackets.
//
// rule: R294
// rule: R297
func TestWhatLooksLikeAnotherMarkingIsTheStepsOwnLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ log, known, evidence string }{
		"brackets in a bucket's": {"step-unit :-\ncompiling\n[report] skipped\nboom: out of space\n", "Boom", "boom: out of space"},
		"brackets out of Loki": {
			"container-step-unit: message=compiling\n[report] skipped\nboom: out of space\n", "Boom", "boom: out of space",
		},
		"a header in tkn's":        {"[unit] compiling\nstep-report :-\nboom: out of space\n", "Boom", "boom: out of space"},
		"a label in tkn's":         {"[unit] compiling\ncontainer-report: message=x\nboom: out of space\n", "Boom", "boom: out of space"},
		"brackets without a mark":  {"boom: out of space\n[report] skipped\n", "Boom", "boom: out of space"},
		"brackets of no container": {"[INFO] boom: out of space\n[report] skipped\n", "Boom", "[INFO] boom: out of space"},
		"after an empty line":      {"\n \ncompiling\n[report] boom\n", "Boom", "[report] boom"},
		"with nothing known":       {"step-unit :-\ncompiling\n[report] skipped\nno space\n", "", "compiling\n[report] skipped\nno space"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := explained(t, own(t, "Boom", "boom"), map[string]string{"run-x": tt.log}, taskRun("run-x", "unit=1", "report=0"))[0]
			known := ""
			if got.KnownFailure != nil {
				known = got.KnownFailure.ID
			}
			if known != tt.known || got.Evidence != tt.evidence || got.Note != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAStepWhoseFailingIsHarmlessIsNotTheOneThatFailed(t *testing.T) {
	t.Parallel()
	tr := taskRun("run-x", "lint=1", "unit=2")
	tr["status"].(object)["steps"].([]any)[0].(object)["terminationReason"] = "Continued"
	if got := explained(t, contract(t), nil, tr); got[0].Step != "unit" {
		t.Errorf("%+v", got[0])
	}
}

// rule: R294
func TestTheConditionsMessageIsTestedToo(t *testing.T) {
	t.Parallel()
	c := own(t, "First", "node was low", "Second", "boom")
	tr := taskRun("run-x", "unit=1").with("False", "Pod failed:\n\x1b[31mThe node was low on disk\x1b[0m")
	got := explained(t, c, map[string]string{"run-x": "boom\n"}, tr)
	if got[0].KnownFailure == nil || got[0].KnownFailure.ID != "First" || got[0].Evidence != "The node was low on disk" {
		t.Errorf("%+v", got[0])
	}
	// Where both say the same, the line is the better evidence.
	got = explained(t, own(t, "Boom", "boom"), map[string]string{"run-x": "boom in the log\n"}, taskRun("run-x", "unit=1").with("False", "boom"))
	if got[0].Evidence != "boom in the log" {
		t.Errorf("%+v", got[0])
	}
}

// rule: R295
func TestTheFirstInTheContractsOrderWins(t *testing.T) {
	t.Parallel()
	const log = "second came before\nfirst one\nfirst two\n"
	for _, pairs := range [][]string{{"A", "first", "B", "second"}, {"A", "f.r.t", "B", "second"}, {"A", "first|nothing", "B", "s.c.nd"}} {
		got := explained(t, own(t, pairs...), map[string]string{"run-x": log}, taskRun("run-x", "unit=1"))
		if got[0].KnownFailure.ID != "A" || got[0].Evidence != "first one" {
			t.Errorf("%q: %+v", pairs, got[0])
		}
	}
	got := explained(t, own(t, "B", "second", "A", "first"), map[string]string{"run-x": log}, taskRun("run-x", "unit=1"))
	if got[0].KnownFailure.ID != "B" || got[0].Evidence != "second came before" {
		t.Errorf("%+v", got[0])
	}
}

// rule: R297
func TestWithoutAMatchTheLastLinesAreTheEvidence(t *testing.T) {
	t.Parallel()
	var all []string
	for n := 1; n <= 40; n++ {
		all = append(all, fmt.Sprintf("line %d", n))
	}
	for name, log := range map[string]string{
		"as it was printed":     strings.Join(all, "\n"),
		"with an end":           strings.Join(all, "\n") + "\n",
		"with empty lines last": strings.Join(all, "\n") + "\n\n \n\r\n",
		"with CRLF":             strings.Join(all, "\r\n") + "\r\n",
		"in colours":            "\x1b[31m" + strings.Join(all, "\x1b[0m\n\x1b[1;31m") + "\x1b[0m\n",
		"as tkn prints it":      "[unit] " + strings.Join(all, "\n[unit] ") + "\n\n[report] other\n",
	} {
		got := explained(t, contract(t), map[string]string{"run-x": log}, taskRun("run-x", "unit=1", "report=0"))
		if got[0].KnownFailure != nil || got[0].Evidence != strings.Join(all[25:], "\n") {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
	raw, err := json.Marshal(explained(t, contract(t), nil, taskRun("run-x", "unit=1")))
	if err != nil || !strings.Contains(string(raw), `"knownFailure":null`) {
		t.Errorf("%s, %v", raw, err)
	}
}

// rule: R298
func TestATaskRunWithoutALogIsExplainedByItsCondition(t *testing.T) {
	t.Parallel()
	tr := taskRun("run-x").with("False", `TaskRun "run-x" failed to finish within "10m0s"`)
	got := explained(t, contract(t), nil, tr)
	if e := got[0]; e.Log != explain.LogMissing || e.KnownFailure == nil || e.KnownFailure.ID != "TaskRunTimedOut" || e.Step != "" {
		t.Errorf("%+v", e)
	}
	// No step failed, so no line is one that shows why; the last still say how far it came.
	got = explained(t, own(t, "Boom", "boom"), map[string]string{"run-x": "boom\nwaiting\n"}, tr)
	if e := got[0]; e.Log != explain.LogArchived || e.KnownFailure != nil || e.Evidence != "boom\nwaiting" {
		t.Errorf("%+v", e)
	}
}

// broken gives some of a log and then fails.
type broken struct{ io.Reader }

func (b broken) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err == nil {
		return n, nil
	}
	return 0, io.ErrUnexpectedEOF
}

func (broken) Close() error { return nil }

// rule: R299
func TestALogThatCannotBeReadFailsTheCall(t *testing.T) {
	t.Parallel()
	both := archived(t, taskRun("run-a", "a=1"), taskRun("run-b", "b=1"))
	fails := errors.New("results answered 500")
	for name, give := range map[string]func() (io.ReadCloser, error){
		"it is refused":            func() (io.ReadCloser, error) { return nil, fails },
		"it breaks off":            func() (io.ReadCloser, error) { return broken{strings.NewReader("boom\nmore")}, nil },
		"it breaks off at a match": func() (io.ReadCloser, error) { return broken{strings.NewReader("OOMKilled\n")}, nil },
	} {
		entries, err := contract(t).Explain(t.Context(), both, func(_ context.Context, uid string) (io.ReadCloser, error) {
			if uid == "uid-run-a" {
				return io.NopCloser(strings.NewReader("--- FAIL: TestA\n")), nil
			}
			return give()
		})
		if err == nil || entries != nil {
			t.Errorf("%s: %+v, %v", name, entries, err)
		}
	}
}

// rule: R300
func TestAPatternThatDoesNotCompileIsNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ contract, want string }{
		"a pattern that is none":   {`{"knownFailures":[{"id":"Good","patterns":["abc"],"hint":"x"},{"id":"Broken","patterns":["abc","a("],"hint":"x"}]}`, `Broken: pattern "a("`},
		"one that RE2 has not":     {`{"knownFailures":[{"id":"Broken","patterns":["(?=abc)"],"hint":"x"}]}`, `Broken: pattern "(?=abc)"`},
		"one that matches nothing": {`{"knownFailures":[{"id":"Broken","patterns":["a*"],"hint":"x"}]}`, `Broken: pattern "a*": it matches every line`},
		"a failure without one":    {`{"knownFailures":[{"id":"Broken","patterns":[],"hint":"x"}]}`, `"Broken"`},
		"an id twice":              {`{"knownFailures":[{"id":"Broken","patterns":["abc"]},{"id":"Broken","patterns":["abc"]}]}`, `"Broken"`},
		"no JSON":                  {`knownFailures`, "reading the contract"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := explain.FromContract([]byte(tt.contract)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// rule: R301
func TestAFailureThatIsAddedToTheContractIsRecognized(t *testing.T) {
	t.Parallel()
	failures := []any{}
	for _, f := range contractFailures(t) {
		failures = append(failures, f)
	}
	failures = append(failures, object{"id": "RunwayClosed", "patterns": []string{"runway [0-9]+ is closed"}, "hint": "Wait."})
	c, err := explain.FromContract(object{"knownFailures": failures}.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	const log = "landing\nrunway 27 is closed\n"
	if e := explainLog(t, contract(t), log); e.KnownFailure != nil {
		t.Errorf("before: %+v", e)
	}
	if e := explainLog(t, c, log); e.KnownFailure == nil || e.KnownFailure.ID != "RunwayClosed" || e.Evidence != "runway 27 is closed" {
		t.Errorf("after: %+v", e)
	}
	if e := explainLog(t, own(t), log); e.KnownFailure != nil {
		t.Errorf("without any: %+v", e)
	}
}

func TestAnArchiveOfV1beta1IsExplainedToo(t *testing.T) {
	t.Parallel()
	tr := taskRun("run-x", "unit=1")
	tr["apiVersion"] = "tekton.dev/v1beta1"
	tr["metadata"].(object)["labels"] = nil
	tr["spec"] = object{"taskRef": object{"name": "go-unit"}}
	delete(tr["status"].(object)["steps"].([]any)[0].(object), "name") // its container has it
	if got := explained(t, contract(t), nil, tr); got[0].Task != "go-unit" || got[0].Step != "unit" {
		t.Errorf("%+v", got[0])
	}
}
