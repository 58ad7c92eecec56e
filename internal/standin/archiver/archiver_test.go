package archiver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/standin/results"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const namespace = "app-shop-cicd"

// cluster is an API server that lists what it was given, and the archive that an
// archiver of it stores into.
type cluster struct {
	t       *testing.T
	archive *results.Server
	*Archiver

	mu      sync.Mutex
	objects map[string]string // resource and name to JSON
	down    string            // a resource that cannot be listed
	lists   int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, objects: map[string]string{}}
	api := httptest.NewServer(c)
	t.Cleanup(api.Close)
	var err error
	if c.archive, err = results.Start(results.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.archive.Stop)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	if c.Archiver, err = New(&rest.Config{Host: api.URL, Transport: transport, QPS: -1}, c.archive); err != nil {
		t.Fatal(err)
	}
	return c
}

// ServeHTTP lists.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists++
	resource, found := strings.CutPrefix(r.URL.Path, "/apis/tekton.dev/v1/")
	if !found || resource == c.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	items := []json.RawMessage{}
	for name, object := range c.objects {
		if strings.HasPrefix(name, resource+"/") {
			items = append(items, json.RawMessage(object))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	kind := map[string]string{"pipelineruns": "PipelineRunList", "taskruns": "TaskRunList"}[resource]
	if err := json.NewEncoder(w).Encode(map[string]any{"kind": kind, "apiVersion": "tekton.dev/v1", "metadata": map[string]any{}, "items": items}); err != nil {
		c.t.Error(err)
	}
}

// put has an object of the cluster be at a version, with this status.
func (c *cluster) put(kind, name string, version int, status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	owner := ""
	if kind == "TaskRun" {
		owner = `,"ownerReferences":[{"apiVersion":"tekton.dev/v1","kind":"PipelineRun","name":"run","uid":"uid-run"}]`
	}
	c.objects[strings.ToLower(kind)+"s/"+name] = fmt.Sprintf(`{"kind":%q,"apiVersion":"tekton.dev/v1","metadata":{"name":%q,"namespace":%q,"uid":"uid-%s","resourceVersion":"%d",`+
		`"creationTimestamp":"2026-11-20T12:00:00Z"%s},"status":%s}`, kind, name, namespace, name, version, owner, status)
}

func (c *cluster) remove(resource, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, resource+"/"+name)
}

// taskRun is the status of one that has ended, but for its steps.
func taskRun(status, reason, steps string) string {
	return fmt.Sprintf(`{"completionTime":"2026-11-20T12:01:00Z","conditions":[{"type":"Succeeded","status":%q,"reason":%q}],"steps":[%s]}`, status, reason, steps)
}

const (
	running = `{"startTime":"2026-11-20T12:00:00Z","conditions":[{"type":"Succeeded","status":"Unknown","reason":"Running"}]}`
	ended   = `{"completionTime":"2026-11-20T12:01:00Z","conditions":[{"type":"Succeeded","status":"True","reason":"Succeeded"}]}`
	build   = `{"name":"build","terminated":{"exitCode":0}}`
	test    = `{"name":"test","terminated":{"exitCode":2}}`
)

func (c *cluster) get(path string) (int, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.archive.URL()+"/apis/results.tekton.dev/v1alpha2/parents/"+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// stored gives the archived objects as Result, name and version, without logs.
func (c *cluster) stored() []string {
	c.t.Helper()
	filter := url.Values{"filter": {`data_type in ["tekton.dev/v1.PipelineRun","tekton.dev/v1.TaskRun"]`}}
	_, body := c.get("-/results/-/records?" + filter.Encode())
	var list struct {
		Records []struct {
			Name string `json:"name"`
			Data struct {
				Value string `json:"value"`
			} `json:"data"`
		} `json:"records"`
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		c.t.Fatal(err)
	}
	all := []string{}
	for _, r := range list.Records {
		value, err := base64.StdEncoding.DecodeString(r.Data.Value)
		if err != nil {
			c.t.Fatal(err)
		}
		var o struct {
			Metadata struct{ Name, ResourceVersion string }
		}
		if err := json.Unmarshal(value, &o); err != nil {
			c.t.Fatal(err)
		}
		all = append(all, strings.Split(r.Name, "/")[2]+" "+o.Metadata.Name+" "+o.Metadata.ResourceVersion)
	}
	slices.Sort(all)
	return all
}

func (c *cluster) sweep(want ...string) {
	c.t.Helper()
	if err := c.Sweep(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	if got := c.stored(); !slices.Equal(got, want) {
		c.t.Errorf("the archive has %q, want %q", got, want)
	}
}

func TestWhatHasFinishedIsArchivedUnderItsRun(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.sweep()
	c.put("PipelineRun", "run", 1, running)
	c.put("TaskRun", "run-build", 2, taskRun("True", "Succeeded", build))
	c.sweep("uid-run run-build 2")
	c.put("PipelineRun", "run", 3, ended)
	c.sweep("uid-run run 3", "uid-run run-build 2")
}

func TestWhatChangesAfterItsEndIsArchivedAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.put("PipelineRun", "run", 1, ended)
	c.sweep("uid-run run 1")
	c.put("PipelineRun", "run", 2, ended)
	c.sweep("uid-run run 2")
	// What did not change is not: what the archive lost since stays lost.
	c.archive.DeleteRecord(namespace, "uid-run", "uid-run")
	c.sweep()
}

func TestWhatIsGoneFromTheClusterStaysArchived(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.put("PipelineRun", "run", 1, ended)
	c.sweep("uid-run run 1")
	c.remove("pipelineruns", "run")
	c.sweep("uid-run run 1")
	if len(c.Archiver.stored) != 0 {
		t.Errorf("it still remembers %v", c.Archiver.stored)
	}
}

func TestWhatALogHolds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ status, want string }{
		"of steps that ended well": {taskRun("True", "Succeeded", build), "[build] + exec build\n[build] done\n"},
		"of a step that failed": {
			taskRun("False", "Failed", build+","+test),
			"[build] + exec build\n[build] done\n\n[test] + exec test\n[test] test did not do what it was asked to\n[test] exit status 2\n",
		},
		"of a step of a sample pipeline that failed": {
			taskRun("False", "Failed", `{"name":"policy","terminated":{"exitCode":1}}`),
			"[policy] + exec policy\n[policy] 7 tests, 6 passed, 0 warnings, 1 failure, 0 exceptions\n[policy] exit status 1\n",
		},
		"of a step that has not ended": {taskRun("True", "Succeeded", `{"name":"build"}`), "[build] + exec build\n[build] done\n"},
		"of one that was cancelled":    {taskRun("False", "TaskRunCancelled", build), ""},
		"of one that took too long":    {taskRun("False", "TaskRunTimeout", build), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.put("TaskRun", "run-x", 1, tt.status)
			c.sweep("uid-run run-x 1")
			status, body := c.get(namespace + "/results/uid-run/logs/uid-run-x")
			if tt.want == "" {
				if status != http.StatusNotFound {
					t.Errorf("%d %q", status, body)
				}
				return
			}
			if status != http.StatusOK || body != tt.want+"\n" { // the server's own newline
				t.Errorf("%d %q", status, body)
			}
		})
	}
}

func TestWhatCannotBeListedOrReadIsArchivedLater(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.put("PipelineRun", "run", 1, ended)
	c.put("TaskRun", "run-build", 2, taskRun("True", "Succeeded", build))
	c.down = "taskruns"
	if err := c.Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), "archiving taskruns") {
		t.Errorf("got %v", err)
	}
	c.down = ""
	c.sweep("uid-run run 1", "uid-run run-build 2")
	for _, status := range []string{`{"completionTime":"yesterday"}`, `{"completionTime":7}`} {
		c.put("PipelineRun", "run", 3, status)
		if err := c.Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), "archiving pipelineruns") {
			t.Errorf("%s: %v", status, err)
		}
	}
	c.put("PipelineRun", "run", 4, ended)
	c.sweep("uid-run run 4", "uid-run run-build 2")
}

func TestItGoesOnUntilItIsEnded(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.every = time.Millisecond
	c.down = "pipelineruns" // at first
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	c.await(func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.lists > 0 })
	c.mu.Lock()
	c.down = ""
	c.mu.Unlock()
	c.put("PipelineRun", "run", 1, ended)
	c.await(func() bool { return len(c.stored()) == 1 })
	c.put("PipelineRun", "other", 2, ended)
	c.await(func() bool { return len(c.stored()) == 2 })
	cancel()
	<-done
}

// await waits until something is so.
func (c *cluster) await(so func() bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.t.Fatal("it never was so")
		}
	}
}
