package livehub

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// node is the part of a cluster that has one TaskRun, "task" of the shop, with
// the pod "pod" whose step "a" writes a log.
type node struct {
	t testing.TB

	mu    sync.Mutex
	asked []string // paths
	pod   string
	log   func(q url.Values, w http.ResponseWriter, r *http.Request)
}

const (
	aTask   = `{"metadata":{"name":"task","uid":"u1"},"status":{"podName":"pod"}}`
	podHead = `{"metadata":{"name":"pod","namespace":"` + shopNS + `","uid":"p1","ownerReferences":[{"kind":"TaskRun","uid":"u1"}]},"spec":{"containers":[{"name":"step-a"},{"name":"step-b"}]},"status":{"containerStatuses":[`
	running = podHead + `{"name":"step-a","containerID":"containerd://1","state":{"running":{}}},{"name":"step-b","state":{"waiting":{"reason":"PodInitializing"}}}]}}`
	done    = podHead + `{"name":"step-a","containerID":"containerd://1","state":{"terminated":{"containerID":"containerd://1"}}}]}}`
	aLine   = "2026-11-29T10:00:00.100000000Z one\n"
)

func newNode(t testing.TB) *node {
	n := &node{t: t, pod: running}
	n.writes(func(_ url.Values, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, aLine) })
	return n
}

// writes has log requests answered by f.
func (n *node) writes(f func(q url.Values, w http.ResponseWriter, r *http.Request)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = f
}

func (n *node) is(pod string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pod = pod
}

func (n *node) requests() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// serve says whether the request was one for a TaskRun, a pod or a log, and
// answers it.
func (n *node) serve(w http.ResponseWriter, r *http.Request) bool {
	tekton, core := "/apis/tekton.dev/v1/namespaces/"+shopNS+"/taskruns/", "/api/v1/namespaces/"+shopNS+"/pods/"
	if !strings.HasPrefix(r.URL.Path, tekton) && !strings.HasPrefix(r.URL.Path, core) {
		return false
	}
	n.mu.Lock()
	n.asked = append(n.asked, r.URL.Path)
	pod, log := n.pod, n.log
	n.mu.Unlock()
	if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer own-token" || r.Header.Get("X-Glidepath-Identity") != "" {
		n.t.Errorf("livehub asked with %s %v", r.Method, r.Header)
	}
	switch r.URL.Path {
	case tekton + "task":
		_, _ = io.WriteString(w, aTask)
	case core + "pod":
		_, _ = io.WriteString(w, pod)
	case core + "pod/log":
		log(r.URL.Query(), w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
	return true
}
