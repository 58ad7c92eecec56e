package tekton_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"

	"hangar.io/glidepath/services/runs/tekton"
)

// described finds the objects that the README of the shared cases has a line
// for, with the condition that it says they have.
var described = regexp.MustCompile(`(?m)^\| (\S+\.json) \| (PipelineRun|TaskRun)\b.*Succeeded condition in the object: (no status|no condition|(\w+)/([^ ;|]+))`)

// ends are the outcomes of conditions that are False, by reason. Every other
// reason is a failure.
var ends = map[string]tekton.Outcome{
	"Cancelled": tekton.Cancelled, "TaskRunCancelled": tekton.Cancelled,
	"PipelineRunTimeout": tekton.TimedOut, "TaskRunTimeout": tekton.TimedOut,
}

// unlike are the objects whose condition is not of the type Succeeded, so that it
// says nothing of how they ended.
var unlike = map[string]bool{
	"konflux-ui/pipelinerun-test-caseqfvdj-Unknown-Unknown.json": true,
	"openshift-console/taskrun-abhi-True-Failed.json":            true,
	"openshift-console/taskrun-taskrun1-abhi-True-Failed.json":   true,
	"openshift-console/taskrun-taskrun1-abhi-True-Failed-2.json": true,
	"stewardci/taskrun-status-False-CouldntGetTask-279.json":     true,
}

// undescribed are the objects of which the README does not quote a condition.
var undescribed = map[string]tekton.Outcome{
	"composed-from-issues/exit-137-error.json":                        tekton.TimedOut,
	"composed-from-issues/onerror-continue.json":                      tekton.Succeeded,
	"composed-from-issues/oom-but-succeeded.json":                     tekton.Succeeded,
	"composed-from-issues/unicode-and-huge-message.json":              tekton.Failed,
	"lighthouse-activity/customrun_failed/cr.yaml":                    tekton.Failed,
	"lighthouse-activity/customrun_failed/pr.yaml":                    tekton.Failed,
	"lighthouse-activity/customrun_no_status/cr.yaml":                 tekton.Unfinished,
	"lighthouse-activity/customrun_no_status/pr.yaml":                 tekton.Unfinished,
	"lighthouse-activity/failed_single_task/pr.yaml":                  tekton.Failed,
	"lighthouse-activity/failed_single_task/tr.yaml":                  tekton.Failed,
	"lighthouse-activity/running_single_task/pr.yaml":                 tekton.Unfinished,
	"lighthouse-activity/running_single_task/tr.yaml":                 tekton.Unfinished,
	"lighthouse-activity/successful_multiple_tasks/pr.yaml":           tekton.Succeeded,
	"lighthouse-activity/successful_multiple_tasks/tr2.yaml":          tekton.Succeeded,
	"lighthouse-activity/update-job/observed-pr.yml":                  tekton.Unfinished,
	"lighthouse-activity/update-job/observed-tr.yml":                  tekton.Unfinished,
	"segment-bridge/managed-r8lm6.yaml":                               tekton.Succeeded,
	"segment-bridge/testrepo-app-enterprise-contract-4b6l6.yaml":      tekton.Succeeded,
	"segment-bridge/testrepo-app-enterprise-contract-p475q.yaml":      tekton.Succeeded,
	"segment-bridge/testrepo-app-enterprise-contract-qrbgk.yaml":      tekton.Succeeded,
	"segment-bridge/testrepo-d69b0-on-pull-request-8pblb.yaml":        tekton.Failed,
	"segment-bridge/testrepo-d69b0-on-pull-request-jzwzt.yaml":        tekton.Succeeded,
	"segment-bridge/testrepo-d69b0-on-push-ftmgp.yaml":                tekton.Succeeded,
	"tekton-experimental/taskrun.yaml":                                tekton.Succeeded,
	"vscode-tekton/pipelinerun.json":                                  tekton.Succeeded,
	"lighthouse-activity/unknown_child_kind_ignored/tr.yaml":          tekton.Succeeded,
	"lighthouse-activity/mixed_taskrun_and_customrun_success/cr.yaml": tekton.Succeeded,
}

func TestTheSharedObjectsEndedAsTheirConditionsSay(t *testing.T) {
	root := os.Getenv("GLIDEPATH_CASES")
	if root == "" {
		t.Skip("GLIDEPATH_CASES names no folder of shared cases")
	}
	root = filepath.Join(root, "tekton")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[tekton.Outcome]int{}
	for _, m := range described.FindAllStringSubmatch(string(readme), -1) {
		file, status, reason, want := m[1], m[4], m[5], tekton.Unfinished
		switch {
		case unlike[file]:
		case status == "True":
			want = tekton.Succeeded
		case status == "False" && ends[reason] != "":
			want = ends[reason]
		case status == "False":
			want = tekton.Failed
		}
		found[want]++
		endedAs(t, filepath.Join(root, file), want)
	}
	for file, want := range undescribed {
		endedAs(t, filepath.Join(root, file), want)
	}
	for _, o := range []tekton.Outcome{tekton.Unfinished, tekton.Succeeded, tekton.Failed, tekton.Cancelled, tekton.TimedOut} {
		if found[o] == 0 {
			t.Errorf("no object of the README ended as %q", o)
		}
	}
	t.Logf("%v and %d more", found, len(undescribed))
}

func endedAs(t *testing.T, file string, want tekton.Outcome) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(raw) {
		if raw, err = yaml.YAMLToJSON(raw); err != nil {
			t.Fatal(err)
		}
	}
	o, err := tekton.Decode(raw)
	if err != nil {
		t.Errorf("%s: %v", file, err)
	} else if got := o.Outcome(); got != want {
		t.Errorf("%s: ended as %q, want %q", file, got, want)
	}
}
