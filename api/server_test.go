package api_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/api/authzapi"
	"hangar.io/glidepath/api/livehubapi"
	"hangar.io/glidepath/api/runsapi"
)

// routeList is a mux that remembers what was registered.
type routeList struct {
	http.ServeMux
	patterns []string
}

func (l *routeList) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	l.patterns = append(l.patterns, pattern)
	l.ServeMux.HandleFunc(pattern, handler)
}

// TestTheGeneratedServersRouteWhatIsServed compares the routes of the generated
// servers with the operations that are not planned, in both directions.
func TestTheGeneratedServersRouteWhatIsServed(t *testing.T) {
	t.Parallel()
	routes := map[string]*routeList{"authz": {}, "livehub": {}, "runs": {}}
	authzapi.HandlerFromMux(nil, routes["authz"])
	livehubapi.HandlerFromMux(nil, routes["livehub"])
	runsapi.HandlerFromMux(nil, routes["runs"])

	got, want := map[string][]string{}, map[string][]string{}
	for backend, list := range routes {
		got[backend] = list.patterns
		slices.Sort(got[backend])
	}
	for _, op := range api.Operations() {
		if !op.Planned {
			want[op.Backend] = append(want[op.Backend], op.Method+" "+op.Path)
		}
	}
	for _, patterns := range want {
		slices.Sort(patterns)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes of the generated servers (-want +got):\n%s", diff)
	}
}

// livehub answers 200 to what the generated server lets through.
type livehub struct{ livehubapi.ServerInterface }

func (livehub) ListLiveRuns(http.ResponseWriter, *http.Request, livehubapi.ListLiveRunsParams) {}

func (livehub) ListLiveTaskRuns(http.ResponseWriter, *http.Request, livehubapi.ListLiveTaskRunsParams) {
}

func TestParametersOfTheGeneratedServer(t *testing.T) {
	t.Parallel()
	server := livehubapi.HandlerWithOptions(livehub{}, livehubapi.StdHTTPServerOptions{
		ErrorHandlerFunc: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadRequest) },
	})
	for name, test := range map[string]struct {
		target string
		want   int
	}{
		"a whole list":                       {"/v1/live", http.StatusOK},
		"a page":                             {"/v1/live?limit=2&continue=abc", http.StatusOK},
		"an unknown parameter":               {"/v1/live?colour=red&colour=blue", http.StatusOK},
		"a limit twice":                      {"/v1/live?limit=2&limit=2", http.StatusBadRequest},
		"a limit that is no number":          {"/v1/live?limit=x", http.StatusBadRequest},
		"a limit that is empty":              {"/v1/live?limit=", http.StatusBadRequest},
		"a limit that is too large a number": {"/v1/live?limit=4294967297", http.StatusBadRequest},
		"a continue twice":                   {"/v1/live?continue=a&continue=a", http.StatusBadRequest},
		"names":                              {"/v1/live/taskruns?pipelineRuns=a,b", http.StatusOK},
		"names twice":                        {"/v1/live/taskruns?pipelineRuns=a&pipelineRuns=b", http.StatusBadRequest},
		"conditions on two lines":            {"/v1/live", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.target, nil)
			r.Header["If-None-Match"] = []string{`"a"`, `"b"`}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			if w.Code != test.want {
				t.Errorf("status %d, want %d", w.Code, test.want)
			}
		})
	}
}
