package livehub

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/kube"
	"hangar.io/glidepath/internal/kubelist"
	"hangar.io/glidepath/internal/sse"
)

// stage is a namespace of a real API server that replicas show.
type stage struct {
	t          *testing.T
	api        *devenv.APIServer
	kubeconfig string
	keys       *keys
	namespace  string
	runs       dynamic.ResourceInterface
}

func newStage(t *testing.T) *stage {
	t.Helper()
	g := &stage{t: t, api: devtest.APIServer(t), keys: newKeys(t), namespace: fleet.NamespaceOf(fleet.AppShop), kubeconfig: t.TempDir() + "/kubeconfig"}
	if err := fleet.Apply(t.Context(), g.api.Admin); err != nil {
		t.Fatal(err)
	}
	if err := g.api.WriteKubeconfig(t.Context(), g.kubeconfig, "", fleet.PlatformNamespace, fleet.LivehubServiceAccount); err != nil {
		t.Fatal(err)
	}
	admin, err := dynamic.NewForConfig(g.api.Admin)
	if err != nil {
		t.Fatal(err)
	}
	g.runs = admin.Resource(schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"}).Namespace(g.namespace)
	return g
}

// house is a replica with its listener.
type house struct {
	*replica
	url string
}

// open starts a replica with a Redis, if url is one.
func (g *stage) open(t *testing.T, url string) house {
	t.Helper()
	cfg, err := kube.Config(kube.Options{Kubeconfig: g.kubeconfig, UserAgent: "glidepath-livehub"})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubelist.NewClient(cfg, kubelist.Limits{Bytes: 64 << 20, Time: 30 * time.Second, Concurrent: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	settings := testConfig
	settings.Redis.URL, settings.Redis.Time = url, 2*time.Second
	p := replicaOf(t, g.keys, settings, client)
	p.server.live.keep = kept
	s := httptest.NewServer(p.handler)
	t.Cleanup(s.Close)
	return house{replica: p, url: s.URL}
}

// went is how many viewers went on by something.
func (h house) went(by string) float64 {
	return testutil.ToFloat64(h.server.back.went.WithLabelValues(by))
}

// touch makes runs, or new versions of them, many at a time.
func (g *stage) touch(t *testing.T, n int, prefix string) {
	t.Helper()
	var all errgroup.Group
	all.SetLimit(16)
	for i := range n {
		all.Go(func() error {
			name := fmt.Sprintf("%s-%d", prefix, i%50)
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun"}}
			o.SetName(name)
			o.SetAnnotations(map[string]string{"turn": fmt.Sprint(i)})
			_, err := g.runs.Apply(t.Context(), name, o, metav1.ApplyOptions{FieldManager: fmt.Sprint("test-", i%50), Force: true})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (g *stage) remove(t *testing.T, name string) {
	t.Helper()
	if err := g.runs.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// now is the version of each run.
func (g *stage) now(t *testing.T) map[string]string {
	t.Helper()
	l, err := g.runs.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, o := range l.Items {
		all[o.GetName()] = o.GetResourceVersion()
	}
	return all
}

// watcher is a viewer with an open stream: it folds what it is sent.
type watcher struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	id     string
	state  map[string]string // version by run
	seen   map[string]bool   // changes, by name and version
	twice  []string
	resets []string
}

// watch opens a stream of a replica; before is what the viewer saw elsewhere.
func (h house) watch(t *testing.T, g *stage, before *watcher) *watcher {
	t.Helper()
	w := &watcher{done: make(chan struct{}), state: map[string]string{}, seen: map[string]bool{}}
	r := h.request("/v1/apps/shop/live/stream", claims("streamLiveRuns", about(shop, g.namespace, "uid")))
	if before != nil {
		w.id, w.state, w.seen = before.id, maps.Clone(before.state), before.seen
		r.Header.Set("Last-Event-ID", w.id)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+r.URL.Path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = r.Header
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("a stream is answered %d", resp.StatusCode)
	}
	go func() {
		defer close(w.done)
		defer func() { _ = resp.Body.Close() }()
		in := sse.NewReader(resp.Body, 64<<20)
		for {
			e, err := in.Next()
			if err != nil {
				return
			}
			w.take(t, e)
		}
	}()
	t.Cleanup(func() { w.leave() })
	return w
}

func (w *watcher) leave() {
	w.cancel()
	<-w.done
}

type shownObject struct {
	Metadata struct{ Name, ResourceVersion string }
}

func (w *watcher) take(t *testing.T, e sse.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.ID != "" {
		w.id = e.ID
	}
	var err error
	switch e.Type {
	case "reset":
		w.resets = append(w.resets, string(e.Data))
	case "snapshot":
		var all struct{ PipelineRuns []shownObject }
		err = json.Unmarshal(e.Data, &all)
		clear(w.state)
		for _, o := range all.PipelineRuns {
			w.state[o.Metadata.Name] = o.Metadata.ResourceVersion
		}
	case "change":
		var c struct {
			Type, Kind, Name string
			Object           shownObject
		}
		if err = json.Unmarshal(e.Data, &c); c.Kind != "PipelineRun" {
			break
		}
		if c.Type == "delete" {
			delete(w.state, c.Name)
			break
		}
		if key := c.Name + "@" + c.Object.Metadata.ResourceVersion; !w.seen[key] {
			w.seen[key] = true
		} else {
			w.twice = append(w.twice, key)
		}
		w.state[c.Name] = c.Object.Metadata.ResourceVersion
	}
	if err != nil {
		t.Errorf("an event %s: %v", e.Type, err)
	}
}

// sees waits until the viewer knows what the cluster has.
func (w *watcher) sees(t *testing.T, g *stage) {
	t.Helper()
	want := g.now(t)
	eventually(t, "the viewer to know what the cluster has", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return maps.Equal(w.state, want)
	})
}

// knows wants the viewer to have been sent so many changes, none twice, and
// never everything.
func (w *watcher) knows(t *testing.T, changes int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) != changes || len(w.twice) > 0 || len(w.resets) > 0 {
		t.Errorf("it was sent %d changes, want %d; twice %q; resets %q", len(w.seen), changes, w.twice, w.resets)
	}
}

func TestViewersOfARealClusterWhoComeBack(t *testing.T) {
	g := newStage(t)
	t.Run("go on at a replica that did not follow", func(t *testing.T) { goOnElsewhere(t, g) })
	t.Run("whatever Redis does", func(t *testing.T) { whateverRedisDoes(t, g) })
}

// A viewer goes on at a replica that has not followed its namespace, and is sent
// each change that it missed, once.
func goOnElsewhere(t *testing.T, g *stage) {
	const few, many = 200, 2000
	for name, tc := range map[string]struct {
		redis  func(t *testing.T) string
		missed int
	}{
		"with a Redis":    {func(t *testing.T) string { t.Helper(); return devtest.Redis(t).URL }, many},
		"without a Redis": {func(*testing.T) string { return "" }, few},
	} {
		t.Run(name, func(t *testing.T) {
			url := tc.redis(t)
			here, there := g.open(t, url), g.open(t, url)
			prefix := fmt.Sprint("missed", tc.missed)
			stays, leaves := here.watch(t, g, nil), here.watch(t, g, nil)
			g.touch(t, 100, prefix)
			leaves.sees(t, g)
			leaves.leave()
			g.touch(t, tc.missed, prefix+"-missed")
			g.remove(t, prefix+"-missed-7")
			stays.sees(t, g)
			stays.knows(t, 100+tc.missed)
			again := there.watch(t, g, leaves)
			again.sees(t, g)
			// It goes on with what happens now, also once the past is over.
			eventually(t, "the end of the past", func() bool { return there.went("past") == 1 })
			g.touch(t, 10, prefix+"-later")
			again.sees(t, g)
			again.knows(t, 100+tc.missed+10)
		})
	}
}
