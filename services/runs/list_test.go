package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/results"
	"hangar.io/glidepath/services/runs/tekton"
)

// listed reads a list.
func (w *world) list(target string, claims *identity.Claims) []map[string]any {
	w.t.Helper()
	var got struct{ Runs []map[string]any }
	if err := json.Unmarshal(w.ok(w.get(target, claims), "RunList"), &got); err != nil {
		w.t.Fatal(err)
	}
	return got.Runs
}

func (w *world) shop(query string) []map[string]any {
	return w.list("/v1/apps/shop/runs"+query, about("listRuns"))
}

// numbers are those that uidOf made the uids of runs of.
func numbers(runs []map[string]any) []int {
	var all []int
	for _, r := range runs {
		var n int
		_, _ = fmt.Sscanf(strings.TrimPrefix(r["result"].(string), "4f0c7d1e-2b6a-4c39-9d5e-"), "%d", &n)
		all = append(all, n)
	}
	return all
}

func fleetWide() *identity.Claims { return &identity.Claims{Op: "listFleetRuns", Tier: "T0"} }

// ago archives runs of the shop that were made so long ago, newest first as the
// archive gives them.
func (w *world) ago(all ...time.Duration) {
	slices.Sort(all)
	for i, d := range all {
		w.archive.runs = append(w.archive.runs, pipelineRun(shopNamespace, i+1, w.now.Add(-d)))
	}
}

// rule: R007, R008
func TestAListHasTheNewestRunsOfItsWindowFirst(t *testing.T) {
	const h = time.Hour
	for query, want := range map[string][]int{
		"":                       {1, 2, 3, 4, 5, 6, 7, 8},
		"?sinceHours=24&limit=2": {1, 2},
		"?sinceHours=24":         {1, 2, 3},
		"?sinceHours=1":          {1},
		"?limit=1000":            {1, 2, 3, 4, 5, 6, 7, 8},
		"?sinceHours=720":        {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		"?colour=red":            {1, 2, 3, 4, 5, 6, 7, 8},
	} {
		t.Run(query, func(t *testing.T) {
			w := newWorld(t)
			w.ago(0, 2*h, 23*h, 25*h, 30*h, 48*h, 71*h, 168*h, 169*h, 719*h)
			if got := numbers(w.shop(query)); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// rule: R238
func TestAListHasFinishedRunsAlone(t *testing.T) {
	w := newWorld(t)
	for i, r := range [][2]string{{"True", "Succeeded"}, {"Unknown", "Running"}, {"False", "Cancelled"}, {"False", "PipelineRunTimeout"}, {"False", "Failed"}} {
		w.archive.runs = append(w.archive.runs, pipelineRun(shopNamespace, i+1, w.now.Add(-time.Duration(i)*time.Minute), ended(r[0], r[1])))
	}
	w.archive.runs = append(w.archive.runs, pipelineRun(shopNamespace, 6, w.now.Add(-time.Hour), func(o map[string]any) { delete(o, "status") }))
	var got []string
	for _, r := range w.shop("") {
		got = append(got, r["status"].(string))
	}
	if !slices.Equal(got, []string{"succeeded", "cancelled", "timedOut", "failed"}) {
		t.Errorf("got %q", got)
	}
}

// rule: R009, R238
func TestAListIsASummaryUnlessItIsToBeFull(t *testing.T) {
	w := newWorld(t)
	at := w.now.Add(-time.Hour)
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, at), pipelineRun(shopNamespace, 2, at.Add(-time.Hour), ended("True", "Completed"))}
	byName := taskRun(shopNamespace, 2, 2, at.Add(-59*time.Minute), func(o map[string]any) {
		m := o["metadata"].(map[string]any)
		delete(m, "ownerReferences")
		m["labels"] = map[string]any{"tekton.dev/pipelineRun": "run-2"}
	})
	w.archive.tasks = []results.Record{ // newest first
		taskRun(shopNamespace, 1, 2, at.Add(2*time.Second)), taskRun(shopNamespace, 9, 1, at.Add(time.Second)),
		taskRun(shopNamespace, 1, 1, at.Add(time.Second)), byName,
	}
	summary := w.ok(w.get("/v1/apps/shop/runs", about("listRuns")), "RunList")
	golden(t, "list.json", summary)
	if named := w.ok(w.get("/v1/apps/shop/runs?view=summary", about("listRuns")), "RunList"); string(named) != string(summary) {
		t.Errorf("a summary is %s", named)
	}
	golden(t, "list-full.json", w.ok(w.get("/v1/apps/shop/runs?view=full", about("listRuns")), "RunList"))
	// One run in full is what the list says of it.
	var full struct{ Runs []json.RawMessage }
	if err := json.Unmarshal(w.get("/v1/apps/shop/runs?view=full", about("listRuns")).Body.Bytes(), &full); err != nil {
		t.Fatal(err)
	}
	if one := w.ok(w.getRun(uidOf(1)), "Run"); string(one) != string(full.Runs[0]) {
		t.Errorf("the run is %s, and in the list %s", one, full.Runs[0])
	}
}

// rule: R033
func TestAListGoesBackToTheNamespacesCreationAndThirtyDays(t *testing.T) {
	w := newWorld(t)
	made := w.now.Add(-10 * time.Hour)
	w.cluster.add(shopNamespace, shopUID, made)
	w.ago(9*time.Hour, 10*time.Hour, 10*time.Hour+time.Second, 20*time.Hour)
	for _, query := range []string{"", "?sinceHours=720"} {
		if got := numbers(w.shop(query)); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("%s: got %v", query, got)
		}
	}
	if want := []string{"runs of " + shopNamespace + " since " + made.Format(time.RFC3339)}; w.archive.asked[0] != want[0] {
		t.Errorf("the archive was asked for %q", w.archive.asked)
	}
	// The same app again: of the old one nothing is seen, kept or archived.
	w.cluster.add(shopNamespace, "shop-again", w.now)
	again := about("listRuns")
	again.NamespaceUID = "shop-again"
	if got := w.list("/v1/apps/shop/runs", again); len(got) != 0 {
		t.Errorf("the new app has %v", got)
	}
	w.refused(w.get("/v1/apps/shop/runs?sinceHours=721", about("listRuns")), problem.BadRequest)
}

func TestWhatIsNoPartOfAListReachesNoSource(t *testing.T) {
	w := newWorld(t)
	for _, query := range []string{
		"sinceHours=0", "sinceHours=721", "sinceHours=-1", "sinceHours=", "sinceHours=1.5", "sinceHours=x", "sinceHours=99999999999",
		"limit=0", "limit=1001", "limit=-1", "limit=", "limit=1e2", "limit=x", "view=", "view=Full", "view=all", "sinceHours=1&limit=0",
	} {
		got := w.get("/v1/apps/shop/runs?"+query, about("listRuns"))
		w.refused(got, problem.BadRequest)
		if !strings.HasPrefix(query, "view") {
			w.refused(w.get("/v1/runs?"+query, fleetWide()), problem.BadRequest)
			if name, _, _ := strings.Cut(query, "="); !strings.Contains(query, "&") && !strings.Contains(got.Body.String(), name) {
				t.Errorf("%s: %s", query, got.Body)
			}
		}
	}
	if len(w.archive.asked) > 0 {
		t.Errorf("the archive was asked for %q", w.archive.asked)
	}
}

// fleet archives a run of each kind of namespace.
func (w *world) fleet() {
	w.cluster.add("app-gate-api-cicd", "gate-uid", w.now.Add(-time.Hour))
	w.cluster.add("infra-postgres-cicd", "postgres-uid", w.now.Add(-time.Hour))
	for i, namespace := range []string{"reporting", "app-gate-api-cicd", shopNamespace, "infra-postgres-cicd", "app-gone-cicd", "app--cicd", "app-x"} {
		w.archive.runs = append(w.archive.runs, pipelineRun(namespace, i+1, w.now.Add(-time.Duration(i)*time.Minute)))
	}
	w.archive.runs = append(w.archive.runs, pipelineRun("app-gate-api-cicd", 8, w.now.Add(-2*time.Hour))) // of a namesake
}

// rule: R015, R264, R265, R033
func TestTheFleetsRunsAreThoseOfEveryNamespaceInOneRead(t *testing.T) {
	w := newWorld(t)
	w.fleet()
	var got []string
	for _, r := range w.list("/v1/runs", fleetWide()) {
		got = append(got, fmt.Sprint(r["namespace"], " ", r["app"]))
	}
	want := []string{
		"reporting <nil>", "app-gate-api-cicd gate-api", "app-shop-cicd shop", "infra-postgres-cicd postgres", "app-gone-cicd gone", "app--cicd <nil>", "app-x <nil>",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if asked := w.archive.asked; len(asked) != 1 || !strings.HasPrefix(asked[0], "runs of - since") {
		t.Errorf("the archive was asked for %q", asked)
	}
}

// rule: R263
func TestAFleetRowIsThatOfTheAppWithItsNamespaceAndApp(t *testing.T) {
	w := newWorld(t)
	w.fleet()
	byApp := fleetWide()
	byApp.App, byApp.Namespace, byApp.NamespaceUID = "shop", shopNamespace, shopUID
	filtered := w.list("/v1/runs?app=shop", byApp)
	if len(filtered) != 1 {
		t.Fatalf("got %v", filtered)
	}
	row := filtered[0]
	if all := w.list("/v1/runs", fleetWide()); fmt.Sprint(all[2]) != fmt.Sprint(row) {
		t.Errorf("the app's row is %v, the fleet's %v", row, all[2])
	}
	if row["namespace"] != shopNamespace || row["app"] != "shop" {
		t.Errorf("got %v", row)
	}
	delete(row, "namespace")
	delete(row, "app")
	if own := w.shop(""); len(own) != 1 || fmt.Sprint(own[0]) != fmt.Sprint(row) {
		t.Errorf("the fleet's row is %v, the app's %v", row, own)
	}
}

func TestARecordThatCannotBeReadIsLeftOutOfListsAndCounted(t *testing.T) {
	w := newWorld(t)
	w.ago(time.Minute, 2*time.Minute, 3*time.Minute)
	w.archive.runs[1].Value = nil                                    // what the archive's client cannot read
	w.archive.runs[2].Value = json.RawMessage(`{"metadata":"none"}`) // what is no object
	w.archive.tasks = []results.Record{{}, taskRun(shopNamespace, 1, 1, w.now)}
	if got := numbers(w.shop("?view=full")); !slices.Equal(got, []int{1}) {
		t.Errorf("got %v", got)
	}
	if got := counted(t, w.server.badRecords); got != 3 {
		t.Errorf("%v are counted", got)
	}
	w.refused(w.getRun(uidOf(3)), problem.SourceFailed)
}

// An end of the archive that is none must not look like one.
func TestAListThatIsCutIsAFailure(t *testing.T) {
	for _, target := range []string{"/v1/apps/shop/runs", "/v1/apps/shop/runs?view=full"} {
		w := newWorld(t)
		w.ago(time.Minute, 2*time.Minute)
		w.archive.fault = errors.New("cut")
		w.refused(w.get(target, about("listRuns")), problem.SourceFailed)
		w.archive.fault = nil
		if got := numbers(w.list(target, about("listRuns"))); len(got) != 2 {
			t.Errorf("%s: afterwards it has %v", target, got)
		}
	}
}

func TestNothingIsReadPastTheLastRunThatIsAskedFor(t *testing.T) {
	w := newWorld(t)
	w.ago(time.Minute, 2*time.Minute, 10*time.Minute)
	w.archive.fault = errors.New("the end was reached")
	if got := numbers(w.shop("?limit=2")); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestAppsOfNamespaces(t *testing.T) {
	for namespace, want := range map[string]string{
		"app-shop-cicd": "shop", "infra-shop-cicd": "shop", "app-infra-x-cicd": "infra-x", "app-cicd": "", "app--cicd": "", "shop-cicd": "", "app-shop": "",
		"infra-cicd-cicd": "cicd", "App-shop-cicd": "", "app--x-cicd": "", "app-x--cicd": "",
	} {
		if got := appOf(namespace); got != want {
			t.Errorf("%s: got %q, want %q", namespace, got, want)
		}
	}
}

func TestARowSaysAllThatTheRunDoes(t *testing.T) {
	w := newWorld(t)
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, w.now, func(o map[string]any) {
		o["metadata"].(map[string]any)["annotations"] = map[string]any{
			"hangar.io/initiator": "user:default/ada", "pipelinesascode.tekton.dev/branch": "main", "pipelinesascode.tekton.dev/sha": "9f1c2d7",
		}
		o["status"].(map[string]any)["startTime"] = w.now.Add(time.Hour).Format(time.RFC3339) // after its end
	})}
	row := w.shop("")[0]
	for name, want := range map[string]any{
		"result": uidOf(1), "name": "run-1", "pipeline": "build", "flow": "ci-build", "status": string(tekton.Failed), "reason": "Failed",
		"revision": "9f1c2d7", "branch": "main", "initiator": "user:default/ada", "durationSeconds": nil, "createdAt": "2026-11-30T12:00:00Z",
	} {
		if row[name] != want {
			t.Errorf("%s is %v, want %v", name, row[name], want)
		}
	}
}
