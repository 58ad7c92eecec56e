package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/test/bench/view"
)

// The app that viewers look at: objects of about 4 kB, half of them of either kind.
const (
	lookedApp       = "bench-live"
	lookedNamespace = "app-" + lookedApp + "-cicd"
	lookedObjects   = 20
	lookedBytes     = 4 << 10
	streamPath      = "/v1/apps/" + lookedApp + "/live/stream"
	pollPath        = "/v1/apps/" + lookedApp + "/live"
	// liveReplicas and liveEdges share the viewers.
	liveReplicas, liveEdges = 2, 2
	// mostStreams is more than any row has at one replica.
	mostStreams = 20_000
)

// watchOf is the path of a watch that first sends all there is.
func watchOf(resource string) string {
	return "/apis/tekton.dev/v1/namespaces/" + lookedNamespace + "/" + resource +
		"?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
}

// lives is a gateway of its own for the live rows, which takes more streams, of one caller, than one may have: two edges and
// two replicas of livehub, at the API server and the Redis of the other.
type lives struct {
	*devenv.Gateway

	token string
	// objects are those that change, each through the client of its kind.
	objects []looked
	// next is the number of the next change.
	next int
}

type looked struct {
	client dynamic.ResourceInterface
	name   string
}

// liveGateway starts it when the first live row is measured.
func (w *World) liveGateway(ctx context.Context) (*lives, error) {
	if w.lives != nil {
		return w.lives, nil
	}
	most := fmt.Sprint(mostStreams)
	g, err := devenv.StartGateway(ctx, devenv.GatewayConfig{
		Dir: filepath.Join(w.options.Dir, "live"), APIServer: w.APIServer, Redis: w.Redis, Race: w.options.Race, Progress: w.options.Progress,
		Edges: liveEdges, Livehubs: liveReplicas,
		Args: map[string][]string{
			"xds": {w.collector}, "authz": {w.collector},
			"livehub": {w.collector, "--live-max-streams=" + most, "--max-logs=" + most, fmt.Sprintf("--streams-per-caller=%d", mostStreams/2)},
		},
	})
	if err != nil {
		return nil, err
	}
	l := &lives{Gateway: g, token: w.reader}
	w.undo = append(w.undo, g.Stop)
	if err := l.fill(ctx); err != nil {
		return nil, fmt.Errorf("making what viewers look at: %w", err)
	}
	w.lives = l
	return l, nil
}

func (l *lives) fill(ctx context.Context) error {
	if err := l.APIServer.EnsureServiceAccount(ctx, lookedNamespace, "default"); err != nil {
		return err
	}
	cfg := rest.CopyConfig(l.APIServer.Admin)
	cfg.QPS = -1 // the rows say how often
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	kinds := []struct{ resource, kind string }{{"pipelineruns", "PipelineRun"}, {"taskruns", "TaskRun"}}
	for i := range lookedObjects {
		k := kinds[i%len(kinds)]
		o := looked{
			client: client.Resource(schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: k.resource}).Namespace(lookedNamespace),
			name:   fmt.Sprintf("looked-%02d", i),
		}
		_, err := o.client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "tekton.dev/v1", "kind": k.kind, "metadata": map[string]any{"name": o.name},
			"spec": map[string]any{"params": []any{map[string]any{"name": "what", "value": strings.Repeat("0123456789abcdef", lookedBytes/16)}}},
		}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		l.objects = append(l.objects, o)
	}
	return nil
}

// spec is that of viewers of the next n changes.
func (l *lives) spec(way view.Way, viewers, n int) view.Spec {
	s := view.Spec{Way: way, Viewers: viewers, From: l.next, Changes: n, Objects: len(l.objects), Headers: map[string]string{}}
	switch way {
	case view.Watch:
		s.Kubeconfig, s.Paths = l.APIServer.Kubeconfig, []string{watchOf("pipelineruns"), watchOf("taskruns")}
		return s
	case view.Poll:
		s.Paths = []string{pollPath}
	default:
		s.Paths = []string{streamPath}
	}
	for _, e := range l.Edges {
		s.URLs = append(s.URLs, e.URL)
	}
	s.Headers["Authorization"] = "Bearer " + l.token
	return s
}

// servers are the processes that serve viewers, by what they are.
func (l *lives) servers() map[string][]*process.Process {
	all := map[string][]*process.Process{"apiserver": {l.APIServer.Process}, "etcd": {l.APIServer.Etcd.Process}, "redis": {l.Redis.Process}}
	for _, h := range l.Livehubs {
		all["livehub"] = append(all["livehub"], h.Process)
	}
	for _, e := range l.Edges {
		all["envoy"], all["authz"] = append(all["envoy"], e.Envoy.Process), append(all["authz"], e.Authz)
	}
	return all
}
