package fleet_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/simulator/life"
	"hangar.io/glidepath/internal/simulator/lifetest"
)

func resource(group, version, plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
}

func pipelineRuns() schema.GroupVersionResource { return resource("tekton.dev", "v1", "pipelineruns") }
func taskRuns() schema.GroupVersionResource     { return resource("tekton.dev", "v1", "taskruns") }

func client(t *testing.T) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(api.Admin)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func list(t *testing.T, of schema.GroupVersionResource, selector string) map[string]*unstructured.Unstructured {
	t.Helper()
	found, err := client(t).Resource(of).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatalf("list %s: %v", of.Resource, err)
	}
	byName := map[string]*unstructured.Unstructured{}
	for i := range found.Items {
		byName[found.Items[i].GetNamespace()+"/"+found.Items[i].GetName()] = &found.Items[i]
	}
	return byName
}

// The tests below that change the fleet are not parallel, so they run before those that are.

func TestApplyingAgainChangesNothing(t *testing.T) {
	kinds := []schema.GroupVersionResource{
		pipelineRuns(), taskRuns(), resource("", "v1", "namespaces"), resource("", "v1", "serviceaccounts"),
		resource("", "v1", "configmaps"), resource("triggers.tekton.dev", "v1beta1", "triggertemplates"),
		resource("argoproj.io", "v1alpha1", "applications"), resource("rbac.authorization.k8s.io", "v1", "clusterroles"),
		resource("rbac.authorization.k8s.io", "v1", "rolebindings"),
	}
	versions := func() map[string]string {
		all := map[string]string{}
		for _, kind := range kinds {
			for name, object := range list(t, kind, "") {
				all[kind.Resource+" "+name] = object.GetResourceVersion()
			}
		}
		return all
	}
	before := versions()
	if err := fleet.Apply(t.Context(), api.Admin); err != nil {
		t.Fatal(err)
	}
	after := versions()
	if len(before) != len(after) {
		t.Errorf("%d objects before, %d after", len(before), len(after))
	}
	for name, version := range before {
		if after[name] != version {
			t.Errorf("%s was written again", name)
		}
	}
}

func TestARunThatIsGoneComesBackWithoutItsLeftovers(t *testing.T) {
	runs := client(t).Resource(pipelineRuns()).Namespace("app-gate-api-cicd")
	if err := runs.Delete(t.Context(), "test-k4x9m", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := fleet.Apply(t.Context(), api.Admin); err != nil {
		t.Fatal(err)
	}
	run, err := runs.Get(t.Context(), "test-k4x9m", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tasks := list(t, taskRuns(), "tekton.dev/pipelineRun=test-k4x9m")
	if len(tasks) != 5 {
		t.Errorf("%d TaskRuns, want 5", len(tasks))
	}
	for name, task := range tasks {
		if !metav1.IsControlledBy(task, run) {
			t.Errorf("%s belongs to the run that is gone", name)
		}
	}
}

func TestARunWhoseMakingWasCutShortIsMadeAgain(t *testing.T) {
	runs := client(t).Resource(pipelineRuns()).Namespace("app-shop-cicd")
	run, err := runs.Get(t.Context(), "build-f7c5q", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(run.Object, "status")
	if _, err := runs.UpdateStatus(t.Context(), run, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := fleet.Apply(t.Context(), api.Admin); err != nil {
		t.Fatal(err)
	}
	if got := reason(t, list(t, pipelineRuns(), "")["app-shop-cicd/build-f7c5q"]); got != "Failed" {
		t.Errorf("the run stands at %q", got)
	}
}

func reason(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	run := &life.PipelineRun{}
	if object == nil {
		return "absent"
	}
	if err := life.Decode(object, run); err != nil {
		t.Fatal(err)
	}
	return run.Status.Conditions.Succeeded().Reason
}

func TestTheSampleRunsStandInEveryState(t *testing.T) {
	t.Parallel()
	runs := list(t, pipelineRuns(), "")
	want := map[string]string{
		"app-gate-api-cicd/image-h2v8n":      "Succeeded",
		"app-gate-api-cicd/test-k4x9m":       "Succeeded",
		"app-gate-api-cicd/test-p6b2w":       "Running",
		"app-shop-cicd/build-f7c5q":          "Failed",
		"app-shop-cicd/deploy-c5j7n":         "Completed",
		"app-shop-cicd/image-g4t2x":          "Running",
		"app-boarding-api-cicd/test-z8n5d":   "Cancelled",
		"app-boarding-api-cicd/deploy-w2q6v": "PipelineRunPending",
		"app-sky-marshall-cicd/build-t8m4z":  "PipelineRunTimeout",
		"infra-postgres-cicd/deploy-m6v9b":   "Succeeded",
		"infra-postgres-cicd/build-j2w7k":    "Cancelled",
		"reporting/build-r9d4s":              "Succeeded",
	}
	if len(runs) != len(want) {
		t.Errorf("%d runs, want %d", len(runs), len(want))
	}
	for name, state := range want {
		if got := reason(t, runs[name]); got != state {
			t.Errorf("%s stands at %q, want %q", name, got, state)
		}
	}
	if retried := list(t, taskRuns(), "")["app-gate-api-cicd/test-k4x9m-unit"]; retried == nil {
		t.Error("no retried TaskRun")
	} else if attempts, _, _ := unstructured.NestedSlice(retried.Object, "status", "retriesStatus"); len(attempts) != 1 {
		t.Errorf("%d attempts behind, want 1", len(attempts))
	}
}

func TestTheSampleRunsCouldBeTektons(t *testing.T) {
	t.Parallel()
	owners := map[string]*unstructured.Unstructured{}
	for name, object := range list(t, pipelineRuns(), "") {
		owners[name] = object
		run := &life.PipelineRun{}
		if err := life.Decode(object, run); err != nil {
			t.Fatal(err)
		}
		run.CreationTimestamp = bornInTime(t, name, run.CreationTimestamp, run.Status.StartTime)
		if err := lifetest.PipelineRunAlone(run); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	tasks := list(t, taskRuns(), "")
	if len(tasks) < 30 {
		t.Errorf("only %d TaskRuns", len(tasks))
	}
	for name, object := range tasks {
		task := &life.TaskRun{}
		if err := life.Decode(object, task); err != nil {
			t.Fatal(err)
		}
		task.CreationTimestamp = bornInTime(t, name, task.CreationTimestamp, task.Status.StartTime)
		if err := lifetest.TaskRunAlone(task); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		owner := owners[object.GetNamespace()+"/"+object.GetLabels()["tekton.dev/pipelineRun"]]
		if owner == nil || !metav1.IsControlledBy(object, owner) || object.GetLabels()["tekton.dev/pipelineRunUID"] != string(owner.GetUID()) {
			t.Errorf("%s does not belong to its run", name)
		}
	}
}

// bornInTime is when a sample could have been created: the cluster made it after a life that lies behind.
func bornInTime(t *testing.T, name string, created metav1.Time, start *metav1.Time) metav1.Time {
	t.Helper()
	if start == nil || created.Before(start) {
		return created
	}
	if age := created.Sub(start.Time); age > 10*time.Minute {
		t.Errorf("%s began %v before it was created", name, age)
	}
	return *start
}

func TestTheSampleRunsTookTheirTime(t *testing.T) {
	t.Parallel()
	ends := map[string]bool{}
	for name, object := range list(t, pipelineRuns(), "") {
		run := &life.PipelineRun{}
		if err := life.Decode(object, run); err != nil {
			t.Fatal(err)
		}
		if !run.Status.Conditions.Done() {
			continue
		}
		took := run.Status.CompletionTime.Sub(run.Status.StartTime.Time)
		if took < 5*time.Second || took > 3*time.Minute {
			t.Errorf("%s took %v", name, took)
		}
		if run.Status.CompletionTime.After(time.Now().Add(time.Second)) {
			t.Errorf("%s ends at %v, which is not yet", name, run.Status.CompletionTime)
		}
		ends[run.Status.CompletionTime.String()] = true
	}
	if len(ends) < 5 {
		t.Errorf("the runs ended at %d different times", len(ends))
	}
}

func TestEveryNamespaceHasItsDefaultServiceAccount(t *testing.T) {
	t.Parallel()
	accounts := list(t, resource("", "v1", "serviceaccounts"), "")
	for _, namespace := range append(fleet.AppNamespaces(), fleet.PlatformNamespace, fleet.CatalogNamespace, fleet.DemoNamespace, fleet.UnrelatedNamespace) {
		if accounts[namespace+"/default"] == nil {
			t.Errorf("%s has no default ServiceAccount", namespace)
		}
	}
	for _, namespace := range fleet.AppNamespaces() {
		if accounts[namespace+"/"+fleet.PipelineServiceAccount] == nil {
			t.Errorf("%s has no ServiceAccount for pipelines", namespace)
		}
	}
}

func TestEveryLaterReadHasSomethingWorthReading(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		of       schema.GroupVersionResource
		selector string
		want     int
	}{
		"release records":   {resource("", "v1", "configmaps"), "hangar.io/subcomponent=release-tracking", 7},
		"release events":    {resource("", "v1", "events"), "", 4},
		"previews":          {resource("argoproj.io", "v1alpha1", "applications"), "hangar.io/preview", 2},
		"trigger templates": {resource("triggers.tekton.dev", "v1beta1", "triggertemplates"), "", 10},
		"repositories":      {resource("pipelinesascode.tekton.dev", "v1alpha1", "repositories"), "", 5},
	} {
		if got := list(t, tt.of, tt.selector); len(got) < tt.want {
			t.Errorf("%d %s, want %d", len(got), name, tt.want)
		}
	}
}

func TestReleaseRecordsJoinByTheirIds(t *testing.T) {
	t.Parallel()
	for name, record := range list(t, resource("", "v1", "configmaps"), "hangar.io/subcomponent=release-tracking") {
		data, _, err := unstructured.NestedStringMap(record.Object, "data")
		if err != nil {
			t.Fatal(err)
		}
		labels := record.GetLabels()
		if want := data["chainId"] + ":" + labels["hangar.io/cluster"] + "/" + labels["hangar.io/env"]; data["releaseId"] != want {
			t.Errorf("%s has releaseId %q, want %q", name, data["releaseId"], want)
		}
		if !strings.HasSuffix(name, "/release-tracking-"+data["chainId"]) || record.GetNamespace() != fleet.NamespaceOf(labels["hangar.io/app"]) {
			t.Errorf("%s is not where its chain id and app say", name)
		}
	}
}
