package livehub

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hangar.io/glidepath/internal/kubelist"
)

// cluster is an API server that serves lists of PipelineRuns and TaskRuns by
// pages of one moment each, and is strict: what a client may not do is a test
// failure.
type cluster struct {
	*httptest.Server
	t    testing.TB
	keys *keys // of the replicas on it

	mu      sync.Mutex
	objects map[string][]object // by resource
	moments map[string][]object // what continue tokens stand for
	asked   []string            // resource, or namespace/resource, of each list; not of further pages
	fault   http.HandlerFunc    // answers instead
	arrived chan struct{}       // gets a value with each request, while it has room
	node    *node               // has the TaskRun and the pod whose log is read
}

type object struct {
	namespace, name, run string
	spec                 string // JSON
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{t: t, keys: newKeys(t), objects: map[string][]object{}, moments: map[string][]object{}, arrived: make(chan struct{}, 1<<10), node: newNode(t)}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// add puts runs, named namespace/name, into the cluster.
func (c *cluster) addRuns(names ...string) {
	for _, n := range names {
		namespace, name, _ := strings.Cut(n, "/")
		c.put("pipelineruns", object{namespace: namespace, name: name, spec: "{}"})
	}
}

// addTasks puts TaskRuns of a run, named namespace/name, into the cluster.
func (c *cluster) addTasks(run string, names ...string) {
	for _, n := range names {
		namespace, name, _ := strings.Cut(n, "/")
		c.put("taskruns", object{namespace: namespace, name: name, run: run, spec: "{}"})
	}
}

func (c *cluster) put(resource string, o object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// In the order of etcd.
	all := append(slices.Clone(c.objects[resource]), o)
	slices.SortFunc(all, func(a, b object) int { return cmp.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name) })
	c.objects[resource] = all
}

// remove takes a run, named namespace/name, out of the cluster.
func (c *cluster) remove(resource, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects[resource] = slices.DeleteFunc(slices.Clone(c.objects[resource]), func(o object) bool { return o.namespace+"/"+o.name == name })
}

// fail has every request answered by f; nil ends that.
func (c *cluster) fail(f http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
}

// lists gives how often each list was begun.
func (c *cluster) lists() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := map[string]int{}
	for _, a := range c.asked {
		count[a]++
	}
	return count
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.node.serve(w, r) {
		return
	}
	what, resource, namespace := c.check(r)
	c.mu.Lock()
	if !r.URL.Query().Has("continue") {
		c.asked = append(c.asked, what)
	}
	fault := c.fault
	c.mu.Unlock()
	select {
	case c.arrived <- struct{}{}:
	default:
	}
	if fault != nil {
		fault(w, r)
		return
	}
	c.page(w, r.URL.Query(), resource, namespace)
}

// check says what is listed, and fails the test for a request that livehub may
// not make.
func (c *cluster) check(r *http.Request) (what, resource, namespace string) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/apis/tekton.dev/v1/")
	if rest, in := strings.CutPrefix(path, "namespaces/"); in {
		namespace, path, _ = strings.Cut(rest, "/")
		what = namespace + "/"
	}
	if r.Method != http.MethodGet || !ok || (path != "pipelineruns" && path != "taskruns") {
		c.t.Errorf("livehub asked for %s %s", r.Method, r.URL)
	}
	if r.Header.Get("Authorization") != "Bearer own-token" || r.Header.Get("X-Glidepath-Identity") != "" {
		c.t.Errorf("livehub asked with %v", r.Header)
	}
	for name, values := range r.URL.Query() {
		if len(values) != 1 || !slices.Contains([]string{"limit", "continue", "labelSelector"}, name) {
			c.t.Errorf("livehub asked with %s=%q", name, values)
		}
	}
	return what + path, path, namespace
}

func (c *cluster) page(w http.ResponseWriter, query url.Values, resource, namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	token := query.Get("continue")
	left := c.moments[token]
	if token == "" {
		left = c.match(resource, namespace, query.Get("labelSelector"))
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit < 1 || limit > 500 {
		c.t.Errorf("livehub asked for pages of %q", query.Get("limit"))
		limit = 1
	}
	next := ""
	if len(left) > limit {
		next = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "moment/%d", len(c.moments)))
		c.moments[next] = left[limit:]
		left = left[:limit]
	}
	var items []string
	for _, o := range left {
		items = append(items, o.json(resource, true))
	}
	_, _ = fmt.Fprintf(w, `{"apiVersion":"tekton.dev/v1","items":[%s],"kind":"%sList","metadata":{"continue":"%s","resourceVersion":"1"}}`+"\n",
		strings.Join(items, ","), kinds[resource].Kind, next)
}

func (c *cluster) match(resource, namespace, selector string) []object {
	var runs []string
	if selector != "" {
		list, ok := strings.CutPrefix(selector, "tekton.dev/pipelineRun in (")
		if !ok || !strings.HasSuffix(list, ")") {
			c.t.Errorf("livehub asked for %q", selector)
		}
		runs = strings.Split(strings.TrimSuffix(list, ")"), ",")
	}
	var found []object
	for _, o := range c.objects[resource] {
		if (namespace == "" || o.namespace == namespace) && (runs == nil || slices.Contains(runs, o.run)) {
			found = append(found, o)
		}
	}
	return found
}

var kinds = map[string]kubelist.Kind{"pipelineruns": pipelineRuns, "taskruns": taskRuns}

// json is the object as the cluster sends it, or as livehub is to show it.
func (o object) json(resource string, managed bool) string {
	fields := ""
	if managed {
		fields = `"managedFields":[{"manager":"kubectl","operation":"Update"}],`
	}
	return fmt.Sprintf(`{"apiVersion":"tekton.dev/v1","kind":%q,"metadata":{"labels":{"tekton.dev/pipelineRun":%q},%s"name":%q,"namespace":%q,"resourceVersion":"1","uid":"uid-%s"},"spec":%s}`,
		kinds[resource].Kind, o.run, fields, o.name, o.namespace, o.name, o.spec)
}

// names reads the names, as namespace/name, out of a list in an answer.
func names(t testing.TB, body []byte, list string) []string {
	t.Helper()
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("the answer is %s: %v", body, err)
	}
	if answer[list] == nil {
		t.Fatalf("the answer has no %s: %.200s", list, body)
	}
	var items []struct {
		Metadata struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(answer[list], &items); err != nil {
		t.Fatal(err)
	}
	all := make([]string, 0, len(items))
	for _, i := range items {
		all = append(all, i.Metadata.Namespace+"/"+i.Metadata.Name)
	}
	return all
}
