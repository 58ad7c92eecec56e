package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/results"
)

// archiveRuns archives n runs of a namespace, one every so often, the newest at
// newest, and forgets them with the test. Their numbers begin with first.
func archiveRuns(t *testing.T, namespace string, first, n int, newest time.Time, every time.Duration) {
	t.Helper()
	// The sample runs of the namespace stay.
	t.Cleanup(func() {
		for i := range n {
			uid := archivedUID(first + i)
			gw.Results.DeleteRecord(namespace, uid, uid)
		}
	})
	for i := range n {
		at := newest.Add(-time.Duration(i) * every).UTC()
		object := fmt.Sprintf(`{"kind":"PipelineRun","apiVersion":"tekton.dev/v1","metadata":{"name":"build-%d","namespace":%q,"uid":%q,"creationTimestamp":%q,`+
			`"labels":{"tekton.dev/pipeline":"build"}},"spec":{"pipelineRef":{"name":"build"}},`+
			`"status":{"startTime":%[4]q,"completionTime":%[5]q,"conditions":[{"type":"Succeeded","status":"True","reason":"Succeeded"}]}}`,
			first+i, namespace, archivedUID(first+i), at.Format(time.RFC3339), at.Add(time.Minute).Format(time.RFC3339))
		if _, err := gw.Results.Archive([]byte(object)); err != nil {
			t.Fatal(err)
		}
	}
}

// archivedUID is the uid of an archived run.
func archivedUID(n int) string { return fmt.Sprintf("%08d", n) + ownUID }

// ownUID ends the uids of runs that tests archive, and of no others.
const ownUID = "-5a11-4000-8000-000000000000"

// archivedRow is what the tests read of a row.
type archivedRow struct {
	Result    string    `json:"result"`
	Namespace string    `json:"namespace"`
	App       string    `json:"app"`
	CreatedAt time.Time `json:"createdAt"`
}

// archived lists archived runs.
func archived(t *testing.T, path string) []archivedRow {
	t.Helper()
	var list struct {
		Runs []archivedRow `json:"runs"`
	}
	ok(t, get(t, path, as(fleet.CallerReader))).decode(t, &list)
	return list.Runs
}

// made is when an app's namespace was made.
func made(t *testing.T, app string) time.Time {
	t.Helper()
	client, err := kubernetes.NewForConfig(gw.APIServer.Admin)
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := client.CoreV1().Namespaces().Get(t.Context(), fleet.NamespaceOf(app), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace.CreationTimestamp.Time
}

// archiveTask archives a TaskRun of an archived run, with a log, and forgets it
// with the test. Its name is unit.
func archiveTask(t *testing.T, namespace string, run int, at time.Time) {
	t.Helper()
	result, task := archivedUID(run), archivedUID(run+500)
	t.Cleanup(func() { gw.Results.DeleteRecord(namespace, result, task) })
	object := fmt.Sprintf(`{"kind":"TaskRun","apiVersion":"tekton.dev/v1","metadata":{"name":"unit","namespace":%q,"uid":%q,"creationTimestamp":%q,`+
		`"labels":{"tekton.dev/pipelineRunUID":%[4]q},"ownerReferences":[{"kind":"PipelineRun","uid":%[4]q}]},"spec":{},"status":{}}`,
		namespace, task, at.UTC().Format(time.RFC3339), result)
	if _, err := gw.Results.Archive([]byte(object)); err != nil {
		t.Fatal(err)
	}
	if err := gw.Results.ArchiveLog(namespace, result, task, []byte("[test] ok\n"), at); err != nil {
		t.Fatal(err)
	}
}

// unreadLimit is the limit of the last list that [unread] gave.
var unreadLimit = 1001

// unread gives a limit that no list was asked for with, so that none is kept.
func unread() int {
	unreadLimit--
	return unreadLimit
}

// warmed waits until runs has read what it reads after a start. A test that
// counts what is asked, or has it fail, is about its own calls.
func warmed(t *testing.T) {
	t.Helper()
	eventually(t, "the cache to be warmed", func() bool {
		log, err := os.ReadFile(gw.Runs[0].Process.Log())
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(log, []byte("the cache was warmed"))
	})
}

// asked gives what was asked at the archive by the calls of f.
func asked(t *testing.T, f func()) []results.Request {
	t.Helper()
	warmed(t)
	gw.Results.Reset()
	f()
	return gw.Results.Requests()
}

// rule: R033, R264, R265
func TestTwentyThousandArchivedRuns(t *testing.T) {
	const runs, namespaces = 20_000, 20
	now := time.Now().Truncate(time.Second)
	floor := made(t, fleet.AppSkyMarshall)
	// A day more than the archive shows, in namespaces that are no more: theirs have no floor.
	every := 31 * 24 * time.Hour / (runs / namespaces)
	for n := range namespaces {
		archiveRuns(t, fmt.Sprintf("app-past-%d-cicd", n), n*1000, runs/namespaces, now.Add(-time.Duration(n)*time.Second), every)
	}
	// Of a namesake of an app, to the second before the app's own.
	own := fleet.NamespaceOf(fleet.AppSkyMarshall)
	archiveRuns(t, own, 30_000, 1000, floor.Add(-time.Second), every)
	archiveRuns(t, own, 40_000, 3, floor.Add(2*time.Second), time.Second)

	limit := unread()
	window := fmt.Sprintf("?sinceHours=720&limit=%d", limit)
	var page []archivedRow
	requests := asked(t, func() { page = archived(t, "/v1/runs"+window) })
	if len(page) != limit || !slices.IsSortedFunc(page, func(a, b archivedRow) int { return b.CreatedAt.Compare(a.CreatedAt) }) {
		t.Errorf("%d runs, newest first: %v", len(page), len(page) == limit)
	}
	for _, r := range requests {
		if r.Parent != "-" || r.Kind != "records" {
			t.Errorf("the fleet's runs were asked for by %s", r.URI)
		}
	}
	if len(requests) < 5 || len(requests) > 8 {
		t.Errorf("%d pages were read for the newest %d", len(requests), limit)
	}
	for _, r := range page {
		app, past := strings.CutPrefix(strings.TrimSuffix(r.Namespace, "-cicd"), "app-past-")
		if past && r.App != "past-"+app {
			t.Fatalf("a run of %s is of the app %q", r.Namespace, r.App)
		}
	}
	for _, r := range archived(t, "/v1/runs"+window+"&app="+fleet.AppSkyMarshall) {
		if r.CreatedAt.Before(floor) || r.Namespace != own {
			t.Errorf("a run of %s from %s is shown", r.Namespace, r.CreatedAt)
		}
	}
	var ids []string
	for _, r := range archived(t, "/v1/apps/"+fleet.AppSkyMarshall+"/runs"+window) {
		if strings.HasSuffix(r.Result, ownUID) {
			ids = append(ids, r.Result)
		}
	}
	if want := []string{archivedUID(40_000), archivedUID(40_001), archivedUID(40_002)}; !slices.Equal(ids, want) {
		t.Errorf("the app has %v", ids)
	}
}

// rule: R034
func TestARunOfANamesakeOrOfAnotherAppIsNotFound(t *testing.T) {
	floor := made(t, fleet.AppSkyMarshall)
	const own, before, others, none = 51_000, 52_000, 53_000, 54_000
	for n, x := range map[int]struct {
		app string
		at  time.Time
	}{own: {fleet.AppSkyMarshall, floor}, before: {fleet.AppSkyMarshall, floor.Add(-time.Second)}, others: {fleet.AppBoardingAPI, time.Now()}} {
		archiveRuns(t, fleet.NamespaceOf(x.app), n, 1, x.at, time.Second)
		archiveTask(t, fleet.NamespaceOf(x.app), n, x.at)
	}
	for _, rest := range []string{"", "/logs/unit", "/explain"} {
		path := func(n int) string { return "/v1/apps/" + fleet.AppSkyMarshall + "/runs/" + archivedUID(n) + rest }
		ok(t, get(t, path(own), as(fleet.CallerReader)))
		for _, n := range []int{before, others, none} {
			refused(t, get(t, path(n), as(fleet.CallerReader)), http.StatusNotFound, "GP-API-404")
		}
	}
}

// rule: R039
func TestTheArchiveIsAskedForAllowedCallsAloneAndWithoutTheirTokens(t *testing.T) {
	const app = "/v1/apps/" + fleet.AppSkyMarshall + "/runs"
	limit := unread()
	run := 61_000 + limit // no test has read it either
	archiveRuns(t, fleet.NamespaceOf(fleet.AppSkyMarshall), run, 1, time.Now(), time.Second)
	paths := []string{fmt.Sprintf("%s?limit=%d", app, limit), app + "/" + archivedUID(run), fmt.Sprintf("/v1/runs?limit=%d", limit)}
	denied := asked(t, func() {
		for _, path := range paths {
			refused(t, get(t, path, as(fleet.CallerStranger)), http.StatusForbidden, "GP-AUTHZ-001")
			refused(t, get(t, path, bearer("none")), http.StatusUnauthorized, "GP-AUTH-002")
		}
	})
	if len(denied) != 0 {
		t.Errorf("refused calls asked the archive for %s", denied[0].URI)
	}
	allowed := asked(t, func() {
		for _, path := range paths {
			ok(t, get(t, path, as(fleet.CallerReader), header("X-Glidepath-Anything", "x")))
		}
	})
	if len(allowed) < len(paths) {
		t.Errorf("%d calls made %d requests", len(paths), len(allowed))
	}
	for _, r := range allowed {
		for name, values := range r.Header {
			if name == "Authorization" || strings.HasPrefix(name, "X-Glidepath") || strings.Contains(strings.Join(values, " "), tokens[fleet.CallerReader]) {
				t.Errorf("the archive was sent %s", name)
			}
		}
	}
}

// A list that Results does not give whole is refused, by name of the source, and
// nothing of it is kept: the next call is answered as if nothing had been.
//
// rule: R401
func TestWhatResultsFailsWithIsNeverHalfAnAnswer(t *testing.T) {
	defer gw.Results.SetFaults()
	warmed(t)
	archiveRuns(t, fleet.NamespaceOf(fleet.AppSkyMarshall), 71_000, 450, time.Now().Add(-time.Second), 0)
	for name, fault := range map[string]results.Fault{
		"a refusal":                     {Status: http.StatusUnauthorized, Body: `{"code":16,"message":"permission denied"}`},
		"an error":                      {Status: http.StatusInternalServerError, Body: "pq: password authentication failed"},
		"a relay whose server is away":  {Status: http.StatusBadGateway, Body: "<html>nginx</html>"},
		"a page that is HTML":           {Status: http.StatusOK, Body: "<html>nginx</html>"},
		"nothing, as its SQL failed":    {Skip: 1, Empty: true},
		"cut in the middle":             {Skip: 1, Cut: 5000},
		"pages that go in a circle":     {Loop: "CgEtGiYKJDA"},
		"an error that comes as a list": {Status: http.StatusOK, Body: `{"code":13,"message":"pq: too many connections"}`},
	} {
		t.Run(name, func(t *testing.T) {
			path := fmt.Sprintf("/v1/apps/%s/runs?limit=%d", fleet.AppSkyMarshall, unread())
			gw.Results.SetFaults(fault)
			a := get(t, path, as(fleet.CallerReader))
			refused(t, a, http.StatusBadGateway, "GP-API-502")
			for _, inside := range []string{"pq:", "nginx", "127.0.0.1", "permission denied", "data_type"} {
				if strings.Contains(string(a.body), inside) {
					t.Errorf("the answer shows %q: %s", inside, a.body)
				}
			}
			gw.Results.SetFaults()
			rows := slices.DeleteFunc(archived(t, path), func(r archivedRow) bool { return !strings.HasSuffix(r.Result, ownUID) })
			if len(rows) != 450 {
				t.Errorf("after the fault there are %d runs", len(rows))
			}
		})
	}
}
