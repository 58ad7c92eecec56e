package livehub

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/kube"
	"hangar.io/glidepath/internal/kubelist"
	"hangar.io/glidepath/internal/sse"
	"hangar.io/glidepath/services/livehub/feed"
)

// Many viewers of a namespace of a real API server see what is made and deleted
// there, by one watch of each kind. The two requests are all it takes: the
// initial events stand for a list.
func TestManyViewersOfARealClusterCostItOneWatchAKind(t *testing.T) {
	api := devtest.APIServer(t)
	if err := fleet.Apply(t.Context(), api.Admin); err != nil {
		t.Fatal(err)
	}
	namespace := fleet.NamespaceOf(fleet.AppShop)
	file := t.TempDir() + "/kubeconfig"
	if err := api.WriteKubeconfig(t.Context(), file, "", fleet.PlatformNamespace, fleet.LivehubServiceAccount); err != nil {
		t.Fatal(err)
	}
	cfg, err := kube.Config(kube.Options{Kubeconfig: file, UserAgent: "glidepath-livehub"})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubelist.NewClient(cfg, kubelist.Limits{Bytes: 64 << 20, Time: 30 * time.Second, Concurrent: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	h := &hub{source: client, maxAge: maxAge}
	s := newStreams(newFeeds(func(s calls.Scope) *feed.Feed {
		return feed.New(feed.Config{NamespaceUID: s.UID, Source: feedSource{hub: h, scope: s}, PollEvery: maxAge})
	}, prometheus.NewRegistry()), 100)
	t.Cleanup(s.feeds.close)
	s.keep = kept
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.serve(w, r, calls.Scope{Namespace: namespace, UID: "uid"}, r.Header.Get("Last-Event-ID"), 30*time.Second); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	mark, err := api.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const viewers = 50
	var opened, left sync.WaitGroup
	opened.Add(viewers)
	for range viewers {
		left.Go(func() { watchRunComeAndGo(ctx, t, server.URL, opened.Done) })
	}
	opened.Wait()
	admin, err := dynamic.NewForConfig(api.Admin)
	if err != nil {
		t.Fatal(err)
	}
	runs := admin.Resource(schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"}).Namespace(namespace)
	run := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun"}}
	run.SetName("comes-and-goes")
	made, err := runs.Create(ctx, run, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := runs.Delete(ctx, run.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	left.Wait()
	s.feeds.close() // the API server writes a watch down when it ends

	eventually(t, "both watches in the audit log", func() bool {
		events, err := api.Audit(t.Context(), mark)
		if err != nil {
			t.Fatal(err)
		}
		asked := map[string]int{}
		for _, e := range events {
			if e.UserAgent == "glidepath-livehub" {
				asked[e.Verb+" "+e.Resource]++
			}
		}
		for what, n := range asked {
			if n > 1 || (what != "watch pipelineruns" && what != "watch taskruns") {
				t.Fatalf("the cluster was asked %v", asked)
			}
		}
		return len(asked) == 2
	})
	theNamesOfThen(t, feedSource{hub: h, scope: calls.Scope{Namespace: namespace, UID: "uid"}}, run.GetName(), made.GetResourceVersion())
}

// theNamesOfThen wants what the cluster held at a version, when it held a run that is gone.
func theNamesOfThen(t *testing.T, source feedSource, run, version string) {
	t.Helper()
	now, err := source.Latest(t.Context(), feed.PipelineRuns)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]bool{version: true, now: false} {
		whole, errWhole := source.ReadAt(t.Context(), feed.PipelineRuns, at, false)
		names, err := source.ReadAt(t.Context(), feed.PipelineRuns, at, true)
		if err != nil || errWhole != nil {
			t.Fatal(err, errWhole)
		}
		found := false
		for i := range names.Len() {
			if names.Meta(i) != whole.Meta(i) {
				t.Errorf("at %s object %d is named %v, and is %v", at, i, names.Meta(i), whole.Meta(i))
			}
			found = found || names.Meta(i).Name == run
		}
		if found != want || names.ResourceVersion() != at || whole.ResourceVersion() != at || names.Len() != whole.Len() {
			t.Errorf("at %s there are %d names as of %s and %d objects as of %s; the run is among them: %t",
				at, names.Len(), names.ResourceVersion(), whole.Len(), whole.ResourceVersion(), found)
		}
	}
}

// watchRunComeAndGo opens a stream and reads it until the run has come and gone.
func watchRunComeAndGo(ctx context.Context, t *testing.T, url string, opened func()) {
	t.Helper()
	done := sync.OnceFunc(opened)
	defer done()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	events := sse.NewReader(resp.Body, 64<<20)
	for _, want := range []string{"snapshot", "change", "change"} {
		e, err := events.Next()
		if err != nil || e.Type != want || e.ID == "" {
			t.Errorf("got %s %q, want a %s: %v", e.Type, e.ID, want, err)
			return
		}
		done()
	}
}
