package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/api/runsapi"
	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/seal"
	"hangar.io/glidepath/services/runs/results"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

const (
	shopNamespace = "app-shop-cicd"
	shopUID       = "shop-uid"
)

var scopeOfShop = calls.Scope{Namespace: shopNamespace, UID: shopUID}

// world is a replica without its edge, on an archive and a cluster in memory.
type world struct {
	t       testing.TB
	now     time.Time
	archive *archived
	cluster *cluster
	server  *server
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), archive: &archived{}, cluster: &cluster{made: map[string]metav1.PartialObjectMetadata{}}}
	w.cluster.add(shopNamespace, shopUID, w.now.AddDate(-1, 0, 0))
	w.server = &server{
		archive: w.archive, namespaces: namespacesOf(w.cluster), documents: keep(t, nil), failures: failures(t),
		heavy: newTurns(heavyReads, heavyWaits, 1), passing: newTurns(passedLogs, passedWaits, passedLogs/2),
		passers: newTurns(passedLogs+passedWaits, passedWaits, passedShare),
		lists:   newBudget(allListBytes, oneListBytes), runs: newBudget(runsBytes, runsBytes), warming: newBudget(warmBytes, warmBytes),
		wait: time.Minute, now: func() time.Time { return w.now },
		badRecords: newBadRecords(prometheus.NewRegistry()), passed: newPassed(prometheus.NewRegistry()),
	}
	return w
}

// keep gives what a replica keeps, on a Redis or on none.
func keep(t testing.TB, redis *cache.Redis, change ...func(*Config)) *documents {
	t.Helper()
	cfg := Config{CacheBytes: 1 << 20, PlainBytes: 1 << 20, SendBytes: minSendBytes, FillTime: time.Minute}
	for _, c := range change {
		c(&cfg)
	}
	keys, err := seal.NewKeys(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDocuments(cfg, keys, redis, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.cache.Close)
	return d
}

// cluster lists namespaces, and counts.
type cluster struct {
	metadata.Getter

	mu    sync.Mutex
	made  map[string]metav1.PartialObjectMetadata
	fault error
	asked []string // field selectors
}

func (c *cluster) add(name, uid string, at time.Time) {
	c.made[name] = metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(at)}}
}

func (c *cluster) List(_ context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, o.FieldSelector)
	if c.fault != nil {
		return nil, c.fault
	}
	list := &metav1.PartialObjectMetadataList{}
	for name, m := range c.made {
		if o.FieldSelector == "" || o.FieldSelector == "metadata.name="+name {
			list.Items = append(list.Items, m)
		}
	}
	return list, nil
}

// archived is an archive of records in memory. It notes what it is asked.
type archived struct {
	mu          sync.Mutex
	runs, tasks []results.Record
	logs        map[string]string // by uid of the TaskRun
	fault       error
	logFault    error
	asked       []string
}

func (a *archived) ask(format string, args ...any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, fmt.Sprintf(format, args...))
	return a.fault
}

func list(all []results.Record, fault error, keep func(results.Record) bool) iter.Seq2[results.Record, error] {
	return func(yield func(results.Record, error) bool) {
		for _, r := range all {
			if r.Value == nil {
				if !yield(r, results.ErrBadRecord) {
					return
				}
			} else if keep(r) && !yield(r, nil) {
				return
			}
		}
		if fault != nil {
			yield(results.Record{}, fault)
		}
	}
}

func (a *archived) PipelineRuns(_ context.Context, namespace string, since time.Time) iter.Seq2[results.Record, error] {
	err := a.ask("runs of %s since %s", namespace, since.UTC().Format(time.RFC3339))
	return list(a.runs, err, func(r results.Record) bool {
		return (namespace == "-" || r.Namespace() == namespace) && !r.Created.Before(since)
	})
}

// PipelineRunRows says null for what is not there and leaves out what rows do not
// show, as the archive does.
func (a *archived) PipelineRunRows(ctx context.Context, namespace string, since time.Time) iter.Seq2[results.Record, error] {
	return func(yield func(results.Record, error) bool) {
		for rec, err := range a.PipelineRuns(ctx, namespace, since) {
			var object map[string]any
			if err == nil && json.Unmarshal(rec.Value, &object) == nil {
				if _, there := object["status"]; !there {
					object["status"] = map[string]any{"startTime": nil, "completionTime": nil, "conditions": nil}
				}
				delete(object, "apiVersion")
				rec.Value, _ = json.Marshal(object) // what was just read
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (a *archived) TaskRuns(_ context.Context, namespace string, since time.Time) iter.Seq2[results.Record, error] {
	err := a.ask("tasks of %s since %s", namespace, since.UTC().Format(time.RFC3339))
	return list(a.tasks, err, func(r results.Record) bool {
		return (namespace == "-" || r.Namespace() == namespace) && !r.Created.Before(since)
	})
}

func (a *archived) TaskRunsOf(_ context.Context, namespace, result string) iter.Seq2[results.Record, error] {
	err := a.ask("tasks of %s/%s", namespace, result)
	return list(a.tasks, err, func(r results.Record) bool { return r.Namespace() == namespace && r.Result() == result })
}

func (a *archived) PipelineRun(_ context.Context, namespace, uid string) (results.Record, error) {
	if err := a.ask("run %s/%s", namespace, uid); err != nil {
		return results.Record{}, err
	}
	for _, r := range a.runs {
		if r.Namespace() == namespace && r.UID == uid {
			return r, nil
		}
	}
	return results.Record{}, results.ErrNotFound
}

func (a *archived) Log(_ context.Context, namespace, result, uid string) (io.ReadCloser, error) {
	if err := a.ask("log %s/%s/%s", namespace, result, uid); err != nil {
		return nil, err
	}
	if a.logFault != nil {
		return nil, a.logFault
	}
	if text, ok := a.logs[uid]; ok {
		return io.NopCloser(strings.NewReader(text)), nil
	}
	return nil, results.ErrNoLog
}

// uidOf makes the uid of a run out of a number.
func uidOf(n int) string { return fmt.Sprintf("4f0c7d1e-2b6a-4c39-9d5e-%012d", n) }

// pipelineRun is a record of a run that failed, or whatever change makes of it.
func pipelineRun(namespace string, n int, created time.Time, change ...func(map[string]any)) results.Record {
	object := map[string]any{
		"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
		"metadata": map[string]any{
			"name": fmt.Sprintf("run-%d", n), "namespace": namespace, "uid": uidOf(n), "creationTimestamp": created.Format(time.RFC3339),
			"labels":        map[string]any{"tekton.dev/pipeline": "build", "hangar.io/flow": "ci-build"},
			"managedFields": []any{map[string]any{"manager": "tekton"}},
		},
		"spec": map[string]any{"pipelineRef": map[string]any{"name": "build"}},
		"status": map[string]any{
			"startTime": created.Add(time.Second).Format(time.RFC3339), "completionTime": created.Add(91 * time.Second).Format(time.RFC3339),
			"conditions": []any{map[string]any{"type": "Succeeded", "status": "False", "reason": "Failed", "message": "Tasks Completed: 1 (Failed: 1)"}},
		},
	}
	return record(namespace, uidOf(n), created, object, change)
}

// taskRun is a record of a TaskRun of run n.
func taskRun(namespace string, n, m int, created time.Time, change ...func(map[string]any)) results.Record {
	object := map[string]any{
		"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
		"metadata": map[string]any{
			"name": fmt.Sprintf("run-%d-task-%d", n, m), "namespace": namespace, "uid": uidOf(1000*n + m), "creationTimestamp": created.Format(time.RFC3339),
			"labels":          map[string]any{"tekton.dev/pipelineRunUID": uidOf(n)},
			"ownerReferences": []any{map[string]any{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "uid": uidOf(n)}},
			"managedFields":   []any{},
		},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Succeeded", "status": "False", "reason": "Failed"}}},
	}
	return record(namespace, uidOf(n), created, object, change)
}

func record(namespace, result string, created time.Time, object map[string]any, change []func(map[string]any)) results.Record {
	for _, c := range change {
		c(object)
	}
	raw, _ := json.Marshal(object) // maps, lists and texts
	meta := object["metadata"].(map[string]any)
	return results.Record{
		Name: namespace + "/results/" + result + "/records/" + meta["uid"].(string), UID: meta["uid"].(string),
		Type: object["kind"].(string), Created: created, Stored: created.Add(3 * time.Second), Value: raw,
	}
}

// ended gives a run another condition.
func ended(status, reason string) func(map[string]any) {
	return func(o map[string]any) {
		o["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Succeeded", "status": status, "reason": reason}}
	}
}

// about is an identity for an app.
func about(op string) *identity.Claims {
	return &identity.Claims{Op: op, Tier: "T0", App: "shop", Namespace: shopNamespace, NamespaceUID: shopUID}
}

// get calls the server as a call is that passed the edge.
func (w *world) get(target string, claims *identity.Claims) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, target, nil)
	return w.send(r, claims)
}

func (w *world) send(r *http.Request, claims *identity.Claims) *httptest.ResponseRecorder {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.mux().ServeHTTP(recorder{rec}, r.WithContext(identity.NewContext(r.Context(), claims)))
	return rec
}

// recorder records what is sent in time.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetWriteDeadline(time.Time) error { return nil }

// ok fails the test unless the answer is a 200 of the contract's shape.
func (w *world) ok(rec *httptest.ResponseRecorder, schema string) []byte {
	w.t.Helper()
	if rec.Code != http.StatusOK {
		w.t.Fatalf("got %d: %s", rec.Code, rec.Body)
	}
	var value any
	if err := json.Unmarshal(rec.Body.Bytes(), &value); err != nil {
		w.t.Fatalf("%v: %.300s", err, rec.Body)
	}
	if err := contract(w.t).Components.Schemas[schema].Value.VisitJSON(value); err != nil {
		w.t.Errorf("against the contract: %v", err)
	}
	return rec.Body.Bytes()
}

// refused fails the test unless the answer is a refusal of the rule.
func (w *world) refused(rec *httptest.ResponseRecorder, rule problem.Rule) {
	w.t.Helper()
	var body problem.Body
	if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || body.Rule != rule.ID || rec.Code != rule.Status {
		w.t.Errorf("got %d %s, want %s", rec.Code, rec.Body, rule.ID)
	}
}

func contract(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// mux serves the operations without their handler's checks of who calls.
func (w *world) mux() http.Handler {
	mux := http.NewServeMux()
	runsapi.HandlerWithOptions(w.server, runsapi.StdHTTPServerOptions{BaseRouter: mux, ErrorHandlerFunc: badParameter})
	return mux
}

// counted is what a counter has counted.
func counted(t testing.TB, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}
