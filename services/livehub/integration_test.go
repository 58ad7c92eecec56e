package livehub

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/identity"
)

// real is a livehub as a process would be, on a real API server that holds the
// sample fleet and on a real Redis.
type real struct {
	t    *testing.T
	api  *devenv.APIServer
	keys *keys
	cfg  Config
}

func startReal(t *testing.T, change ...func(*Config)) *real {
	t.Helper()
	api := devtest.APIServer(t)
	ctx := t.Context()
	if err := fleet.Apply(ctx, api.Admin); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t) // for its keys and files; nothing asks it
	r := &real{t: t, api: api, keys: c.keys, cfg: runConfig(t, c)}
	r.cfg.Redis.URL = devtest.Redis(t).URL
	r.cfg.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := api.WriteKubeconfig(ctx, r.cfg.Kubeconfig, "", fleet.PlatformNamespace, fleet.LivehubServiceAccount); err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(&r.cfg)
	}
	stop := start(t, r.cfg)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *real) get(target string, c identity.Claims) (status int, body string) {
	r.t.Helper()
	token, err := r.keys.signer.Sign(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return fetch(r.t, "http://"+r.cfg.Listen+target, http.Header{identity.Header: {token}})
}

// shown is any answer of a live read.
type shown struct {
	PipelineRuns, TaskRuns []map[string]any
}

func (r *real) answer(target string, c identity.Claims) shown {
	r.t.Helper()
	status, body := r.get(target, c)
	var a shown
	if err := json.Unmarshal([]byte(body), &a); status != http.StatusOK || err != nil {
		r.t.Fatalf("status %d, %.300s: %v", status, body, err)
	}
	return a
}

// plain reads what a plain client with an administrator's rights does, but for
// managedFields.
func (r *real) plain(resource, namespace string, options metav1.ListOptions) []map[string]any {
	r.t.Helper()
	client, err := dynamic.NewForConfig(r.api.Admin)
	if err != nil {
		r.t.Fatal(err)
	}
	list, err := client.Resource(schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: resource}).Namespace(namespace).List(r.t.Context(), options)
	if err != nil {
		r.t.Fatal(err)
	}
	var all []map[string]any
	for _, item := range list.Items {
		if item.GetManagedFields() == nil {
			r.t.Fatalf("%s has no managedFields to be left out", item.GetName())
		}
		unstructured.RemoveNestedField(item.Object, "metadata", "managedFields")
		raw, err := json.Marshal(item.Object)
		if err != nil {
			r.t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(raw, &object); err != nil { // so that numbers are of one type
			r.t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

func (r *real) compare(what string, got, want []map[string]any) {
	r.t.Helper()
	if len(want) == 0 {
		r.t.Fatalf("%s: the cluster holds none, which proves nothing", what)
	}
	if len(got) != len(want) {
		r.t.Fatalf("%s: %d objects, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			r.t.Errorf("%s: object %d is\n%v\nwant\n%v", what, i, got[i], want[i])
		}
	}
}

// rule: R013, R016, R017, R239, R259, R401
func TestARealClusterIsShownAsAPlainClientReadsIt(t *testing.T) {
	r := startReal(t)
	namespace := fleet.NamespaceOf(fleet.AppShop)
	ns, err := r.api.Client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ofShop := about(fleet.AppShop, namespace, string(ns.UID))
	mark, err := r.api.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	live := r.answer("/v1/apps/shop/live", claims("listLive", ofShop))
	r.compare("listLive's PipelineRuns", live.PipelineRuns, r.plain("pipelineruns", namespace, metav1.ListOptions{}))
	r.compare("listLive's TaskRuns", live.TaskRuns, r.plain("taskruns", namespace, metav1.ListOptions{}))
	r.compare("listLiveRuns", r.answer("/v1/live", claims("listLiveRuns")).PipelineRuns, r.plain("pipelineruns", "", metav1.ListOptions{}))
	r.compare("listLiveRuns of an app", r.answer("/v1/live?app=shop", claims("listLiveRuns", ofShop)).PipelineRuns,
		r.plain("pipelineruns", namespace, metav1.ListOptions{}))
	run, found, err := unstructured.NestedString(live.PipelineRuns[0], "metadata", "name")
	if err != nil || !found {
		t.Fatal("a PipelineRun without a name", err)
	}
	selected := metav1.ListOptions{LabelSelector: "tekton.dev/pipelineRun=" + run}
	r.compare("listLiveTaskRuns", r.answer("/v1/live/taskruns?pipelineRuns="+run, claims("listLiveTaskRuns")).TaskRuns, r.plain("taskruns", "", selected))
	r.compare("listLiveTaskRuns of an app", r.answer("/v1/live/taskruns?app=shop&pipelineRuns="+run, claims("listLiveTaskRuns", ofShop)).TaskRuns,
		r.plain("taskruns", namespace, selected))

	r.onlyListed(mark)
	r.outage(ofShop)
}

// onlyListed wants that the cluster was asked for lists alone, by livehub's own
// identity.
func (r *real) onlyListed(mark devenv.AuditMark) {
	r.t.Helper()
	events, err := r.api.Audit(r.t.Context(), mark)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(events) == 0 {
		r.t.Error("the cluster was asked for nothing")
	}
	for _, e := range events {
		if e.Verb != "list" || e.User != fleet.ServiceIdentity(fleet.LivehubServiceAccount).Username() || e.UserAgent != "glidepath-livehub" ||
			(e.Resource != "pipelineruns" && e.Resource != "taskruns") || e.Code != http.StatusOK {
			r.t.Errorf("the cluster was asked %+v", e)
		}
	}
}

// outage ends the API server and starts it again.
func (r *real) outage(ofShop func(*identity.Claims)) {
	r.t.Helper()
	r.api.Process.Kill()
	eventually(r.t, "the outage to show", func() bool {
		status, _ := r.get("/v1/apps/shop/live", claims("listLive", ofShop))
		return status == http.StatusBadGateway
	})
	if err := r.api.Process.Restart(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "the cluster to be read again", func() bool {
		status, _ := r.get("/v1/apps/shop/live", claims("listLive", ofShop))
		return status == http.StatusOK
	})
}
