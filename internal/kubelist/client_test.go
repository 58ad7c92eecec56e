package kubelist_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/kubelist"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var taskRuns = kubelist.Kind{APIVersion: "tekton.dev/v1", Kind: "TaskRun", Resource: "taskruns"}

var limits = kubelist.Limits{Bytes: 1 << 20, Time: 10 * time.Second, Concurrent: 2}

// server answers each request by the next of its answers, and remembers what
// was asked.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	next  []http.HandlerFunc
}

func newServer(t *testing.T, answers ...http.HandlerFunc) *server {
	t.Helper()
	s := &server{next: answers}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	answer := http.NotFound
	if len(s.next) > 0 {
		answer, s.next = s.next[0], s.next[1:]
	}
	s.mu.Unlock()
	answer(w, r)
}

func (s *server) client(t *testing.T, l kubelist.Limits) *kubelist.Client {
	t.Helper()
	c, err := kubelist.NewClient(&rest.Config{Host: s.URL, BearerToken: "own-token", UserAgent: "livehub"}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// pageOf answers with TaskRuns of a namespace.
func pageOf(next, namespace string, names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, pageText(next, namespace, names...))
	}
}

func pageText(next, namespace string, names ...string) string {
	var items []string
	for _, n := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q}}`, n, namespace))
	}
	return `{"kind":"TaskRunList","apiVersion":"tekton.dev/v1","metadata":{"continue":"` + next + `"},"items":[` + strings.Join(items, ",") + "]}"
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func names(l *kubelist.List) []string {
	var all []string
	for i := range l.Len() {
		all = append(all, l.Meta(i).Name)
	}
	return all
}

func TestTheNamesAsOfAVersionAreAskedFor(t *testing.T) {
	var accept string
	first := func(w http.ResponseWriter, r *http.Request) {
		accept = r.Header.Get("Accept")
		_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"p2","resourceVersion":"17"},"items":[`+
			`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"12"}}]}`)
	}
	q := kubelist.Query{Kind: taskRuns, Namespace: "ns", At: "17", Names: true}
	s := newServer(t, first, status(http.StatusOK, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"17"},"items":null}`), pageOf("", "ns", "a"))
	c := s.client(t, limits)
	l, err := c.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if l.Len() != 1 || l.Meta(0).Name != "a" || l.Meta(0).ResourceVersion != "12" || l.ResourceVersion() != "17" {
		t.Errorf("listed %v as of %s", names(l), l.ResourceVersion())
	}
	const base = "GET /apis/tekton.dev/v1/namespaces/ns/taskruns?"
	if want := []string{base + "limit=500&resourceVersion=17&resourceVersionMatch=Exact", base + "continue=p2&limit=500"}; !slices.Equal(s.asked, want) {
		t.Errorf("asked %q", s.asked)
	}
	if want := "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"; accept != want {
		t.Errorf("asked for %q", accept)
	}
	if _, err := c.List(t.Context(), q); err == nil {
		t.Error("whole objects pass for their names")
	}
}

func TestAListIsAskedForPageByPage(t *testing.T) {
	var headers []http.Header
	remember := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			headers = append(headers, r.Header.Clone())
			next(w, r)
		}
	}
	s := newServer(t, remember(pageOf("p/2+", "ns", "a", "b")), pageOf("p3", "ns", "c"), pageOf("", "ns"))
	l, err := s.client(t, limits).List(t.Context(), kubelist.Query{Kind: taskRuns, Namespace: "ns", Labels: "tekton.dev/pipelineRun in (x,y)"})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(l); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("listed %v", got)
	}
	const base = "GET /apis/tekton.dev/v1/namespaces/ns/taskruns?"
	const labels = "labelSelector=tekton.dev%2FpipelineRun+in+%28x%2Cy%29&limit=500"
	if want := []string{base + labels, base + "continue=p%2F2%2B&" + labels, base + "continue=p3&" + labels}; !slices.Equal(s.asked, want) {
		t.Errorf("asked\n%s\nwant\n%s", strings.Join(s.asked, "\n"), strings.Join(want, "\n"))
	}
	h := headers[0]
	if h.Get("Authorization") != "Bearer own-token" || h.Get("Accept") != "application/json" || h.Get("User-Agent") != "livehub" || h.Get("Accept-Encoding") != "identity" {
		t.Errorf("headers %v", h)
	}
}

func TestAListOfEverythingNamesNoNamespace(t *testing.T) {
	s := newServer(t, pageOf("", "any", "a"), status(200, `{"kind":"ConfigMapList","apiVersion":"v1","items":[]}`))
	c := s.client(t, limits)
	if _, err := c.List(t.Context(), kubelist.Query{Kind: taskRuns}); err != nil {
		t.Error(err)
	}
	core := kubelist.Kind{APIVersion: "v1", Kind: "ConfigMap", Resource: "configmaps"}
	if _, err := c.List(t.Context(), kubelist.Query{Kind: core}); err != nil {
		t.Error(err)
	}
	if want := []string{"GET /apis/tekton.dev/v1/taskruns?limit=500", "GET /api/v1/configmaps?limit=500"}; !slices.Equal(s.asked, want) {
		t.Errorf("asked %v", s.asked)
	}
}

func TestAListThatExpiresBetweenPagesBeginsOnceMore(t *testing.T) {
	gone := status(http.StatusGone, `{"kind":"Status","reason":"Expired","metadata":{"continue":"inconsistent"},"code":410}`)
	t.Run("and ends well", func(t *testing.T) {
		s := newServer(t, pageOf("p2", "ns", "old"), gone, pageOf("p2", "ns", "a"), pageOf("", "ns", "b"))
		l, err := s.client(t, limits).List(t.Context(), kubelist.Query{Kind: taskRuns})
		if err != nil {
			t.Fatal(err)
		}
		if got := names(l); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("listed %v: pages of two moments are mixed", got)
		}
		if len(s.asked) != 4 || strings.Contains(s.asked[2], "continue") {
			t.Errorf("asked %v", s.asked)
		}
	})
	t.Run("but not twice", func(t *testing.T) {
		s := newServer(t, pageOf("p2", "ns", "old"), gone, pageOf("p2", "ns", "a"), gone, pageOf("", "ns"))
		if l, err := s.client(t, limits).List(t.Context(), kubelist.Query{Kind: taskRuns}); err == nil || l != nil {
			t.Errorf("listed %v", l)
		}
		if len(s.asked) != 4 {
			t.Errorf("asked %v", s.asked)
		}
	})
}

func TestAnAPIServerThatFailsGivesNoList(t *testing.T) {
	whole := pageText("", "ns", "a", "b")
	for name, answers := range map[string][]http.HandlerFunc{
		"401":                 {status(401, `{"kind":"Status"}`)},
		"403":                 {status(403, "forbidden")},
		"404, the CRD absent": {status(404, "404 page not found")},
		"429":                 {status(429, "")},
		"500":                 {status(500, "")},
		"503":                 {status(503, "")},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, pageOf("", "ns", "a")},
		"200 with garbage":           {status(200, "garbage")},
		"201 with a list":            {status(201, whole)},
		"a list that is cut":         {status(200, whole[:len(whole)/2])},
		"a list whose stream breaks": {func(w http.ResponseWriter, _ *http.Request) { breakOff(w, whole[:len(whole)-2]) }},
		"a second page that fails":   {pageOf("p2", "ns", "a"), status(500, "")},
		"pages that never end":       {pageOf("p2", "ns", "a"), pageOf("p2", "ns", "b")},
		"more than a list may have":  {status(200, pageText("", "ns", strings.Repeat("x", int(limits.Bytes))))},
		"more over all its pages":    {pageOf("p2", "ns", strings.Repeat("x", int(limits.Bytes/2))), pageOf("p3", "ns", strings.Repeat("x", int(limits.Bytes/2)))},
		"an object of another space": {pageOf("", "elsewhere", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, answers...)
			l, err := s.client(t, limits).List(t.Context(), kubelist.Query{Kind: taskRuns, Namespace: "ns"})
			if err == nil || l != nil {
				t.Errorf("listed %v, %v", l, err)
			}
			if len(s.asked) > len(answers) || (name == "a redirect" && len(s.asked) > 1) {
				t.Errorf("asked %v", s.asked)
			}
		})
	}
}

// breakOff sends a part of an answer and cuts the connection.
func breakOff(w http.ResponseWriter, part string) {
	_, _ = io.WriteString(w, part)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way of cutting a connection
}

func TestAListThatJustFitsIsTaken(t *testing.T) {
	text := pageText("", "ns", "a")
	for over, fits := range map[int]bool{0: true, 1: false} {
		s := newServer(t, status(200, text))
		l := limits
		l.Bytes = int64(len(text) - over)
		if _, err := s.client(t, l).List(t.Context(), kubelist.Query{Kind: taskRuns}); (err == nil) != fits {
			t.Errorf("%d bytes with a limit of %d: %v", len(text), l.Bytes, err)
		}
	}
}

func TestAnAPIServerThatIsGoneGivesNoList(t *testing.T) {
	s := newServer(t)
	s.Close()
	if l, err := s.client(t, limits).List(t.Context(), kubelist.Query{Kind: taskRuns}); err == nil {
		t.Errorf("listed %v", l)
	}
}

func TestANamespaceThatIsNoneIsNotAskedFor(t *testing.T) {
	s := newServer(t)
	for _, namespace := range []string{"../../../api/v1/secrets", "a/b", "A", "a?b", "a..b", ".."} {
		if _, err := s.client(t, limits).List(t.Context(), kubelist.Query{Kind: taskRuns, Namespace: namespace}); err == nil {
			t.Errorf("%q is listed", namespace)
		}
	}
	if len(s.asked) != 0 {
		t.Errorf("asked %v", s.asked)
	}
}

func TestAListThatTakesTooLongEnds(t *testing.T) {
	release := make(chan struct{})
	hang := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"kind":`)
		_ = http.NewResponseController(w).Flush()
		<-release
	}
	s := newServer(t, hang)
	t.Cleanup(func() { close(release) })
	l := limits
	l.Time = 50 * time.Millisecond
	if _, err := s.client(t, l).List(t.Context(), kubelist.Query{Kind: taskRuns}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestOnlySoManyListsAreReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The transport blocks on a channel, so no real network is needed.
		gate := make(chan struct{})
		var mu sync.Mutex
		reading, most := 0, 0
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			reading++
			most = max(most, reading)
			mu.Unlock()
			<-gate
			mu.Lock()
			reading--
			mu.Unlock()
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(pageText("", "ns"))), Request: r}, nil
		})
		c, err := kubelist.NewClient(&rest.Config{Host: "http://api", WrapTransport: func(http.RoundTripper) http.RoundTripper { return transport }}, limits)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := c.List(t.Context(), kubelist.Query{Kind: taskRuns}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if reading != limits.Concurrent {
			t.Errorf("%d lists are read, want %d", reading, limits.Concurrent)
		}
		// One that waits for its turn gives up in time.
		l, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.List(l, kubelist.Query{Kind: taskRuns}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a list without a turn: %v", err)
		}
		close(gate)
		all.Wait()
		if most != limits.Concurrent {
			t.Errorf("%d lists were read at once", most)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAClientNeedsItsLimits(t *testing.T) {
	for _, l := range []kubelist.Limits{{}, {Bytes: 1, Time: 1}, {Bytes: 1, Concurrent: 1}, {Time: 1, Concurrent: 1}} {
		if _, err := kubelist.NewClient(&rest.Config{Host: "http://api"}, l); err == nil {
			t.Errorf("%+v is enough", l)
		}
	}
	if _, err := kubelist.NewClient(&rest.Config{Host: "http://api:port:port"}, limits); err == nil {
		t.Error("an address that is none is taken")
	}
}
