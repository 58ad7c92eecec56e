package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/testkube"
)

// archiveFailed archives a failed run of an app with three TaskRuns: one that succeeded, one whose step failed with this log,
// and one that timed out and left none. It gives the run's uid.
func archiveFailed(t *testing.T, app, log string) string {
	t.Helper()
	namespace, run, at := fleet.NamespaceOf(app), archivedUID(50_000), made(t, app).Add(time.Second).UTC().Format(time.RFC3339)
	// The sample runs of the namespace stay.
	t.Cleanup(func() {
		for n := range 4 {
			gw.Results.DeleteRecord(namespace, run, archivedUID(50_000+n))
		}
	})
	const object = `{"kind":%q,"apiVersion":"tekton.dev/v1","metadata":{"name":%q,"namespace":%q,"uid":%q,"creationTimestamp":%q,"labels":%s%s},"spec":{},"status":%s}`
	labels := `{"tekton.dev/pipeline":"build","tekton.dev/pipelineTask":"unit","tekton.dev/pipelineRunUID":"` + run + `"},"ownerReferences":[{"apiVersion":"tekton.dev/v1","kind":"PipelineRun","uid":"` + run + `"}]`
	status := func(succeeded, message string, exit int) string {
		return fmt.Sprintf(`{"startTime":%q,"completionTime":%[1]q,"conditions":[{"type":"Succeeded","status":%q,"message":%q}],"steps":[{"name":"test","container":"step-test","terminated":{"exitCode":%d}}]}`,
			at, succeeded, message, exit)
	}
	values := []string{fmt.Sprintf(object, "PipelineRun", "build-failed", namespace, run, at, `{"tekton.dev/pipeline":"build"}`, "", status("False", "Failed: 2", 0))}
	for n, s := range []string{status("True", "All Steps have completed executing", 0), status("False", "exited with code 1", 1), status("False", `TaskRun "build-failed-2" failed to finish within "10m0s"`, 0)} {
		values = append(values, fmt.Sprintf(object, "TaskRun", fmt.Sprintf("build-failed-%d", n), namespace, archivedUID(50_001+n), at, labels, "", s))
	}
	for _, v := range values {
		if _, err := gw.Results.Archive([]byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	for n, text := range []string{"[test] --- FAIL: TestNotThisOne\n", log} {
		if err := gw.Results.ArchiveLog(namespace, run, archivedUID(50_001+n), []byte(text), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

// rule: R012
func TestARunIsExplainedThroughTheEdge(t *testing.T) {
	run := archiveFailed(t, fleet.AppSkyMarshall, "[test] ok\n[test] \x1b[31m--- FAIL: TestLanding (0.01s)\x1b[0m\n[test] FAIL\n")
	var got struct {
		Failures []struct {
			TaskRun, Task, Step, Evidence, Log string
			KnownFailure                       *struct{ ID, Hint string }
		}
	}
	path := "/v1/apps/" + fleet.AppSkyMarshall + "/runs/" + run + "/explain"
	ok(t, get(t, path, as(fleet.CallerReader))).decode(t, &got)
	if len(got.Failures) != 2 {
		t.Fatalf("%+v", got)
	}
	if f := got.Failures[0]; f.TaskRun != "build-failed-1" || f.Step != "test" || f.KnownFailure == nil || f.KnownFailure.ID != "TestsFailed" ||
		f.Evidence != "--- FAIL: TestLanding (0.01s)" || f.Log != "archived" {
		t.Errorf("%+v", f)
	}
	if f := got.Failures[1]; f.TaskRun != "build-failed-2" || f.KnownFailure == nil || f.KnownFailure.ID != "TaskRunTimedOut" || f.Log != "missing" {
		t.Errorf("%+v", f)
	}
	refused(t, get(t, strings.Replace(path, fleet.AppSkyMarshall, fleet.AppShop, 1), as(fleet.CallerReader)), http.StatusNotFound, "GP-API-404")
}

// rule: R023, R024, R350
func TestTestsAndTheirReportsThroughTheEdge(t *testing.T) {
	floor := made(t, fleet.AppSkyMarshall)
	report := `<?xml version="1.0"?><testsuites><testsuite name="runway"/></testsuites>`
	execution := func(n int, app string, at time.Time) testkube.Execution {
		return testkube.Execution{
			ID: fmt.Sprintf("5a11%020d", n), Name: fmt.Sprintf("runway-%d", n), Workflow: "runway", Status: "passed", Scheduled: at, Started: at, Finished: at.Add(time.Second),
			Steps: []testkube.Step{{Ref: "a", Status: "passed"}}, Tags: map[string]string{"app": app}, Artifacts: map[string][]byte{"data/artifacts/junit.xml": []byte(report)},
		}
	}
	all := []testkube.Execution{
		execution(1, fleet.AppSkyMarshall, floor.Add(time.Second)), execution(2, fleet.AppSkyMarshall, floor.Add(2*time.Second)),
		execution(3, fleet.AppBoardingAPI, floor.Add(time.Second)), execution(4, fleet.AppSkyMarshall, floor.Add(-time.Second)),
	}
	gw.Testkube.Put(all...)
	var got struct{ Tests []struct{ ID, Status string } }
	ok(t, get(t, "/v1/apps/"+fleet.AppSkyMarshall+"/tests", as(fleet.CallerReader))).decode(t, &got)
	if len(got.Tests) != 2 || got.Tests[0].ID != all[1].ID || got.Tests[1].ID != all[0].ID || got.Tests[0].Status != "passed" {
		t.Errorf("%+v", got)
	}
	path := "/v1/apps/" + fleet.AppSkyMarshall + "/tests/%s/report"
	a := get(t, fmt.Sprintf(path, all[0].ID), as(fleet.CallerReader))
	if a.status != http.StatusOK || string(a.body) != report || a.header.Get("Content-Type") != "application/xml" {
		t.Errorf("%d %s %q", a.status, a.header.Get("Content-Type"), a.body)
	}
	for _, other := range all[2:] {
		refused(t, get(t, fmt.Sprintf(path, other.ID), as(fleet.CallerReader)), http.StatusNotFound, "GP-API-404")
	}
	refused(t, get(t, "/v1/apps/"+fleet.AppSkyMarshall+"/tests?limit=201", as(fleet.CallerReader)), http.StatusBadRequest, "GP-API-400")
}
