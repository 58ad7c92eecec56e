package runs

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/results"
)

func (w *world) getRun(id string) *httptest.ResponseRecorder {
	return w.get("/v1/apps/shop/runs/"+id, about("getRun"))
}

// rule: R010
func TestARunIsAnsweredWithItsObjectsAsTheyWereArchived(t *testing.T) {
	w := newWorld(t)
	at := w.now.Add(-time.Hour)
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, at)}
	// Not in the order of their creation, and with one of a run that shares the Result.
	other := taskRun(shopNamespace, 2, 1, at)
	other.Name = strings.Replace(other.Name, uidOf(2), uidOf(1), 1)
	w.archive.tasks = []results.Record{taskRun(shopNamespace, 1, 2, at.Add(2*time.Second)), other, taskRun(shopNamespace, 1, 1, at.Add(time.Second))}
	body := w.ok(w.getRun(uidOf(1)), "Run")
	var got struct {
		Result      string
		PipelineRun json.RawMessage
		TaskRuns    []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, task := range got.TaskRuns {
		names = append(names, task.Metadata.Name)
	}
	if got.Result != uidOf(1) || !slices.Equal(names, []string{"run-1-task-1", "run-1-task-2"}) {
		t.Errorf("got %s with %q", got.Result, names)
	}
	want := strings.Replace(string(w.archive.runs[0].Value), `"managedFields":[{"manager":"tekton"}],`, "", 1)
	if string(got.PipelineRun) != want {
		t.Errorf("the PipelineRun is\n%s\nand was archived as\n%s", got.PipelineRun, want)
	}
	golden(t, "run.json", body)
}

// rule: R034, R397
func TestARunThatIsNotTheAppsIsNotFound(t *testing.T) {
	w := newWorld(t)
	made := w.now.Add(-24 * time.Hour)
	w.cluster.add(shopNamespace, shopUID, made)
	w.archive.runs = []results.Record{
		pipelineRun(shopNamespace, 1, made),
		pipelineRun(shopNamespace, 2, made.Add(-time.Second)),
		pipelineRun("app-gate-api-cicd", 3, made.Add(time.Hour)),
		pipelineRun(shopNamespace, 4, made.Add(time.Hour), ended("Unknown", "Running")),
	}
	if got := w.getRun(uidOf(1)); got.Code != 200 {
		t.Errorf("one made with the namespace: %d %s", got.Code, got.Body)
	}
	for name, id := range map[string]string{
		"one from before the namespace": uidOf(2),
		"one of another app":            uidOf(3),
		"one that has not finished":     uidOf(4),
		"one that never was":            uidOf(5),
	} {
		t.Run(name, func(t *testing.T) {
			w.refused(w.getRun(id), problem.NotFound)
		})
	}
	t.Run("any, when the namespace was made again", func(t *testing.T) {
		anew := about("getRun")
		anew.NamespaceUID = "another-uid"
		w.refused(w.get("/v1/apps/shop/runs/"+uidOf(1), anew), problem.NotFound)
		w.cluster.add(shopNamespace, "another-uid", w.now)
		w.refused(w.get("/v1/apps/shop/runs/"+uidOf(1), anew), problem.NotFound)
	})
}

// rule: R393, R010
func TestWhatIsNoIdOfARunReachesNoSource(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{
		"ci-0-build-abc", "-", "4f0c7d1e", strings.ToUpper(uidOf(1)), uidOf(1) + "0", "x" + uidOf(1), strings.ReplaceAll(uidOf(1), "-", ""),
		uidOf(1)[:35] + "g", "'%20OR%20'1'='1",
	} {
		w.refused(w.getRun(id), problem.BadRequest)
	}
	if len(w.archive.asked) > 0 || len(w.cluster.asked) > 0 {
		t.Errorf("the archive was asked for %q, the cluster for %q", w.archive.asked, w.cluster.asked)
	}
}

func TestACallWithAnotherIdentityIsRefused(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*identity.Claims){
		"for another app":             func(c *identity.Claims) { c.App = "gate-api" },
		"without a namespace":         func(c *identity.Claims) { c.Namespace = "" },
		"without the namespace's uid": func(c *identity.Claims) { c.NamespaceUID = "" },
	} {
		t.Run(name, func(t *testing.T) {
			claims := about("getRun")
			change(claims)
			w.refused(w.get("/v1/apps/shop/runs/"+uidOf(1), claims), problem.EdgeUnauthorized)
		})
	}
	if len(w.archive.asked) > 0 {
		t.Errorf("the archive was asked for %q", w.archive.asked)
	}
}

func TestASourceThatFailsIsSaidToHaveFailed(t *testing.T) {
	const secret = "what the source said"
	w := newWorld(t)
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, w.now)}
	w.archive.fault = errors.New(secret)
	got := w.getRun(uidOf(1))
	w.refused(got, problem.SourceFailed)
	if strings.Contains(got.Body.String(), secret) {
		t.Errorf("it answers %s", got.Body)
	}
	w.archive.fault = nil
	w.cluster.fault, w.server.namespaces.known = errors.New(secret), map[string]time.Time{}
	got = w.getRun(uidOf(1))
	w.refused(got, problem.SourceFailed)
	if strings.Contains(got.Body.String(), secret) {
		t.Errorf("it answers %s", got.Body)
	}
}

func TestTheCreationOfANamespaceIsAskedForOnce(t *testing.T) {
	w := newWorld(t)
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, w.now)}
	for range 3 {
		w.ok(w.getRun(uidOf(1)), "Run")
	}
	if !slices.Equal(w.cluster.asked, []string{"metadata.name=" + shopNamespace}) {
		t.Errorf("the cluster was asked %q", w.cluster.asked)
	}
}
