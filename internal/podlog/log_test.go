package podlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var times = Times{Answer: 10 * time.Second, Stall: 10 * time.Second, Settle: 10 * time.Second}

// apiServer answers for one TaskRun and its pod. Each field is what the next
// answer is made of.
type apiServer struct {
	task, pod  atomic.Value // string
	log        atomic.Value // func(query url.Values, w http.ResponseWriter, r *http.Request)
	containers atomic.Int64 // how often the pod was read
	strays     atomic.Int64 // how often anything else was asked for
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	object := func(v any) {
		text := v.(string)
		if text == "" {
			status(w, http.StatusNotFound, "not found")
			return
		}
		_, _ = io.WriteString(w, text)
	}
	switch r.URL.Path {
	case "/apis/tekton.dev/v1/namespaces/ns/taskruns/task":
		object(a.task.Load())
	case "/api/v1/namespaces/ns/pods/pod":
		a.containers.Add(1)
		object(a.pod.Load())
	case "/api/v1/namespaces/ns/pods/pod/log":
		a.log.Load().(func(url.Values, http.ResponseWriter, *http.Request))(r.URL.Query(), w, r)
	default:
		a.strays.Add(1)
		status(w, http.StatusNotFound, "no such path: "+r.URL.Path)
	}
}

func status(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":%d}`, message, code)
}

const (
	aTask    = `{"metadata":{"name":"task","uid":"u1"},"status":{"podName":"pod"}}`
	owned    = `"metadata":{"name":"pod","namespace":"ns","uid":"p1","ownerReferences":[{"kind":"TaskRun","uid":"u1"}]}`
	spec     = `"spec":{"containers":[{"name":"step-a"},{"name":"sidecar-b"}],"initContainers":[{"name":"prepare"}]}`
	runs     = `{"name":"step-a","containerID":"containerd://1","state":{"running":{}}}`
	ended    = `{"name":"step-a","containerID":"containerd://1","state":{"terminated":{"containerID":"containerd://1"}}}`
	runAgain = `{"name":"step-a","containerID":"containerd://2","state":{"running":{}},"lastState":{"terminated":{"containerID":"containerd://1"}}}`
)

func podWith(statuses string) string {
	return `{` + owned + `,` + spec + `,"status":{"containerStatuses":[` + statuses + `]}}`
}

// text has the log be a text, whose last line is asked for by itself.
func (a *apiServer) text(log string) {
	a.log.Store(func(q url.Values, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tail(q, log)) })
}

func tail(q url.Values, log string) string {
	if q.Get("tailLines") == "1" {
		i := strings.LastIndexByte(strings.TrimSuffix(log, "\n"), '\n')
		return log[i+1:]
	}
	return log
}

func newAPI(t *testing.T, change ...func(*Times)) (*apiServer, *Client) {
	t.Helper()
	a := &apiServer{}
	a.task.Store(aTask)
	a.pod.Store(podWith(runs))
	a.text("")
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	ts := times
	for _, f := range change {
		f(&ts)
	}
	c, err := NewClient(&rest.Config{Host: server.URL}, ts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return a, c
}

func find(t *testing.T, c *Client) *Container {
	t.Helper()
	of, err := c.Find(t.Context(), "ns", "task", "step-a")
	if err != nil {
		t.Fatal(err)
	}
	return of
}

func read(t *testing.T, c *Client, follow bool) (string, error) {
	t.Helper()
	l, err := c.Open(t.Context(), find(t, c), follow)
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	raw, err := io.ReadAll(l)
	return string(raw), err
}

func TestAContainerIsFoundByItsTaskRunAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		task, pod, container string
		want                 error
		id                   string
	}{
		"a running step":                  {aTask, podWith(runs), "step-a", nil, "containerd://1"},
		"a step that has ended":           {aTask, podWith(ended), "step-a", nil, "containerd://1"},
		"one that was started again":      {aTask, podWith(runAgain), "step-a", nil, "containerd://2"},
		"one that waits to start again":   {aTask, podWith(`{"name":"step-a","state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"containerID":"containerd://1"}}}`), "step-a", nil, "containerd://1"},
		"one that waits":                  {aTask, podWith(`{"name":"step-a","state":{"waiting":{"reason":"PodInitializing"}}}`), "step-a", ErrNotStarted, ""},
		"one of a pod without a node":     {aTask, podWith(""), "step-a", ErrNotStarted, ""},
		"one that left no log":            {aTask, podWith(`{"name":"step-a","state":{"terminated":{"reason":"ContainerStatusUnknown"}}}`), "step-a", ErrGone, ""},
		"an init container":               {aTask, `{` + owned + `,` + spec + `,"status":{"initContainerStatuses":[{"name":"prepare","state":{"terminated":{"containerID":"containerd://9"}}}]}}`, "prepare", nil, "containerd://9"},
		"a sidecar":                       {aTask, podWith(runs + `,{"name":"sidecar-b","containerID":"containerd://3","state":{"running":{}}}`), "sidecar-b", nil, "containerd://3"},
		"one that the pod has not":        {aTask, podWith(runs), "step-z", ErrNoContainer, ""},
		"no TaskRun":                      {"", podWith(runs), "step-a", ErrGone, ""},
		"a TaskRun without a pod":         {`{"metadata":{"uid":"u1"},"status":{}}`, podWith(runs), "step-a", ErrGone, ""},
		"a TaskRun that nobody began":     {`{"metadata":{"uid":"u1"}}`, podWith(runs), "step-a", ErrGone, ""},
		"a pod that is gone":              {aTask, "", "step-a", ErrGone, ""},
		"a pod of another TaskRun":        {aTask, strings.Replace(podWith(runs), `"u1"`, `"u2"`, 1), "step-a", ErrGone, ""},
		"a pod of something else":         {aTask, strings.Replace(podWith(runs), `"TaskRun"`, `"Job"`, 1), "step-a", ErrGone, ""},
		"a pod of nobody, with the label": {aTask, `{"metadata":{"name":"pod","namespace":"ns","labels":{"tekton.dev/taskRun":"task"}},` + spec + `,"status":{"containerStatuses":[` + runs + `]}}`, "step-a", ErrGone, ""},
		"a TaskRun without a UID":         {`{"status":{"podName":"pod"}}`, strings.Replace(podWith(runs), `"u1"`, `""`, 1), "step-a", ErrGone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, c := newAPI(t)
			a.task.Store(tc.task)
			a.pod.Store(tc.pod)
			of, err := c.Find(t.Context(), "ns", "task", tc.container)
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if err == nil && (of.id != tc.id || of.name != tc.container) {
				t.Errorf("got %+v", of)
			}
		})
	}
}

// Whoever may write a TaskRun's status names its pod.
func TestAPodThatNoPodCanBeNamedIsNotAskedFor(t *testing.T) {
	for _, name := range []string{"../../other/pods/x", "../secrets/x", "../pods/pod", "..", "pod/log", "/pod", "pod?x", "%2e%2e", "Pod", strings.Repeat("a", 254)} {
		t.Run(name[:min(len(name), 20)], func(t *testing.T) {
			a, c := newAPI(t)
			a.task.Store(fmt.Sprintf(`{"metadata":{"name":"task","uid":"u1"},"status":{"podName":%q}}`, name))
			if _, err := c.Find(t.Context(), "ns", "task", "step-a"); !errors.Is(err, ErrGone) {
				t.Errorf("got %v", err)
			}
			if pods, strays := a.containers.Load(), a.strays.Load(); pods+strays > 0 {
				t.Errorf("the API server was asked for the pod %d times, for something else %d times", pods, strays)
			}
		})
	}
}

// A printed object of a caller's own is what a misled path would bring.
func TestAnAnswerAboutAnotherPodIsNone(t *testing.T) {
	for name, change := range map[string][2]string{
		"another name":      {`"name":"pod"`, `"name":"../../other/pods/x"`},
		"another namespace": {`"namespace":"ns"`, `"namespace":"other"`},
	} {
		t.Run(name, func(t *testing.T) {
			a, c := newAPI(t)
			a.pod.Store(strings.Replace(podWith(runs), change[0], change[1], 1))
			if of, err := c.Find(t.Context(), "ns", "task", "step-a"); err == nil {
				t.Errorf("got %+v", of)
			}
		})
	}
}

func TestNoNameMakesAnotherPath(t *testing.T) {
	a, c := newAPI(t)
	for _, name := range []string{"", ".", "..", "../pods/pod", "a/b", "%2e%2e", `a\b`} {
		body, err := c.open(t.Context(), nil, "api", "v1", "namespaces", "ns", "pods", name)
		if err == nil {
			_ = body.Close()
			t.Errorf("%q: the API server was asked", name)
		}
	}
	if pods, strays := a.containers.Load(), a.strays.Load(); pods+strays > 0 {
		t.Errorf("the API server was asked %d times", pods+strays)
	}
}

// lastAnd gives one text for the last line and another for the log.
func lastAnd(last, log string) func(url.Values) string {
	return func(q url.Values) string {
		if q.Has("tailLines") {
			return last
		}
		return log
	}
}

// What the API server answers in good order, and what it is.
func TestTheEndOfAnAnswerIsNotTheEndOfALog(t *testing.T) {
	const whole, lost = stamp1 + "one\n" + stamp2 + "two\n", "unable to retrieve container logs for containerd://1"
	for name, tc := range map[string]struct {
		pod    string
		follow bool
		log    func(q url.Values) string
		want   error // nil for a whole one
	}{
		"a whole log":                                {runs, false, lastAnd(stamp2+"two\n", whole), nil},
		"an empty one":                               {runs, false, lastAnd("", ""), nil},
		"one that grew meanwhile":                    {runs, false, lastAnd(stamp1+"one\n", whole), nil},
		"cut between lines":                          {ended, false, lastAnd(stamp2+"two\n", stamp1+"one\n"), ErrCut},
		"cut within a line":                          {ended, false, lastAnd(stamp2+"two\n", whole[:len(whole)-2]), ErrCut},
		"cut within a time":                          {ended, false, lastAnd(stamp2+"two\n", whole+stamp2[:12]), ErrCut},
		"cut before its first byte":                  {ended, false, lastAnd(stamp2+"two\n", ""), ErrCut},
		"a sentence at its end":                      {ended, false, lastAnd(stamp2+"two\n", whole+"rpc error: code = Unknown"), ErrCut},
		"a sentence instead":                         {ended, false, lastAnd(lost, lost), ErrNoLog},
		"a sentence instead, followed":               {runs, true, lastAnd(lost, lost), ErrNoLog},
		"followed to the end":                        {ended, true, lastAnd(stamp2+"two\n", whole), nil},
		"followed, cut, and the container has ended": {ended, true, lastAnd(stamp2+"two\n", stamp1+"one\n"), ErrCut},
		"followed, and the container was replaced":   {runAgain, true, lastAnd(stamp2+"two\n", whole), nil},
		"followed, and the one that came after differs": {runAgain, true, func(q url.Values) string {
			if q.Get("previous") == "true" {
				return stamp2 + "two\n"
			}
			return lastAnd("2026-11-29T10:05:00.0Z of the next\n", whole)(q)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, c := newAPI(t)
			if tc.pod != runAgain { // which it becomes while it is followed
				a.pod.Store(podWith(tc.pod))
			}
			a.log.Store(func(q url.Values, w http.ResponseWriter, _ *http.Request) {
				if q.Get("timestamps") != "true" || q.Get("container") != "step-a" || q.Get("follow") == "true" != (tc.follow && !q.Has("tailLines")) {
					t.Errorf("asked with %v", q)
				}
				_, _ = io.WriteString(w, tc.log(q))
				if !q.Has("tailLines") && tc.pod == runAgain {
					a.pod.Store(podWith(runAgain))
				}
			})
			got, err := read(t, c, tc.follow)
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Fatalf("got %q, %v; want %v", got, err, tc.want)
			}
			if strings.Contains(got, "rpc error") || strings.Contains(got, "unable") {
				t.Errorf("what the node said is passed on: %q", got)
			}
		})
	}
}

func TestAFollowedLogIsCutWhileItsContainerRuns(t *testing.T) {
	a, c := newAPI(t, func(ts *Times) { ts.Settle = 600 * time.Millisecond })
	a.text(stamp1 + "one\n")
	if got, err := read(t, c, true); !errors.Is(err, ErrCut) || got != stamp1+"one\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if n := a.containers.Load(); n < 3 {
		t.Errorf("it looked %d times, once to find it", n)
	}
}

func TestAFollowedLogWaitsForTheClusterToSayThatItsContainerHasEnded(t *testing.T) {
	a, c := newAPI(t)
	a.text(stamp1 + "one\n")
	of := find(t, c)
	l, err := c.Open(t.Context(), of, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(l)
		read <- err
	}()
	for before := a.containers.Load(); a.containers.Load() < before+2; {
		select {
		case err := <-read:
			t.Fatalf("it ended with %v while the container runs", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	a.pod.Store(podWith(ended))
	if err := <-read; err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAFollowedLogOfAPodThatIsRemovedHasEnded(t *testing.T) {
	for name, after := range map[string]string{"gone": "", "made again": strings.Replace(podWith(runs), "p1", "p2", 1)} {
		t.Run(name, func(t *testing.T) {
			a, c := newAPI(t)
			a.log.Store(func(_ url.Values, w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, stamp1+"one\n")
				a.pod.Store(after)
			})
			of := find(t, c)
			l, err := c.Open(t.Context(), of, true)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			if got, err := io.ReadAll(l); err != nil || string(got) != stamp1+"one\n" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestALogIsCutWhenNobodyCanSayWhetherItsContainerHasEnded(t *testing.T) {
	a, c := newAPI(t)
	a.log.Store(func(q url.Values, w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, stamp1+"one\n")
		a.pod.Store("no object")
	})
	of := find(t, c)
	l, err := c.Open(t.Context(), of, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, err := io.ReadAll(l); !errors.Is(err, ErrCut) {
		t.Errorf("got %v", err)
	}
}

func TestWhatTheAPIServerRefusesSaysWhy(t *testing.T) {
	for code, want := range map[int]error{http.StatusBadRequest: ErrNotStarted, http.StatusNotFound: ErrGone, http.StatusInternalServerError: nil} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			a, c := newAPI(t)
			a.log.Store(func(_ url.Values, w http.ResponseWriter, _ *http.Request) { status(w, code, "the node said so") })
			_, err := read(t, c, false)
			if err == nil || !strings.Contains(err.Error(), "the node said so") {
				t.Errorf("got %v", err)
			}
			for _, known := range []error{ErrNotStarted, ErrGone, ErrNoContainer, ErrNoLog, ErrSlow, ErrCut} {
				if errors.Is(err, known) != errors.Is(want, known) {
					t.Errorf("got %v, is it %v: %v", err, known, errors.Is(err, known))
				}
			}
		})
	}
}

// wait lets an answer hang until its caller leaves.
func wait(r *http.Request) { <-r.Context().Done() }

func TestSlowAnswersAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		log  func(q url.Values, w http.ResponseWriter, r *http.Request)
		want error
	}{
		"no last line": {func(q url.Values, _ http.ResponseWriter, r *http.Request) { wait(r) }, ErrSlow},
		"no log": {func(q url.Values, _ http.ResponseWriter, r *http.Request) {
			if !q.Has("tailLines") {
				wait(r)
			}
		}, ErrSlow},
		"no more of it": {func(q url.Values, w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, stamp1+"one\n")
			if !q.Has("tailLines") {
				_ = http.NewResponseController(w).Flush()
				wait(r)
			}
		}, ErrCut},
	} {
		t.Run(name, func(t *testing.T) {
			a, c := newAPI(t, func(ts *Times) { ts.Stall = 100 * time.Millisecond })
			a.log.Store(tc.log)
			of := find(t, c)
			if !errors.Is(tc.want, ErrCut) {
				c.times.Answer = 100 * time.Millisecond // for the log alone
			}
			l, err := c.Open(t.Context(), of, false)
			if err == nil {
				_, err = io.ReadAll(l)
				_ = l.Close()
			}
			if !errors.Is(err, tc.want) || !errors.Is(err, ErrSlow) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestAFollowedLogMayBeSilent(t *testing.T) {
	a, c := newAPI(t, func(ts *Times) { ts.Stall = 50 * time.Millisecond })
	silent := make(chan struct{})
	a.log.Store(func(q url.Values, w http.ResponseWriter, r *http.Request) {
		if q.Has("tailLines") {
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-silent
		_, _ = io.WriteString(w, stamp1+"one\n")
		a.pod.Store(podWith(ended))
	})
	of := find(t, c)
	l, err := c.Open(t.Context(), of, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	time.AfterFunc(300*time.Millisecond, func() { close(silent) })
	if got, err := io.ReadAll(l); err != nil || string(got) != stamp1+"one\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestWhoeverLeavesEndsTheReadingAtItsSource(t *testing.T) {
	a, c := newAPI(t)
	left := make(chan struct{})
	a.log.Store(func(q url.Values, w http.ResponseWriter, r *http.Request) {
		if q.Has("tailLines") {
			return
		}
		_ = http.NewResponseController(w).Flush()
		wait(r)
		close(left)
	})
	ctx, cancel := context.WithCancel(t.Context())
	l, err := c.Open(ctx, find(t, c), true)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(l); err == nil {
		t.Error("it ended like a whole one")
	}
	<-left
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	_ = l.Close()
}

func TestAClientNeedsItsTimes(t *testing.T) {
	for _, ts := range []Times{{}, {Answer: 1, Stall: 1}, {Answer: 1, Settle: 1}, {Stall: 1, Settle: 1}} {
		if _, err := NewClient(&rest.Config{Host: "http://127.0.0.1:1"}, ts); err == nil {
			t.Errorf("%+v was taken", ts)
		}
	}
}
