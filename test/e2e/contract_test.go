package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
)

// route is what Envoy's config dump says of one route.
type route struct {
	Name  string
	Match struct {
		Path            string
		PathMatchPolicy struct {
			TypedConfig struct {
				Template string `json:"path_template"`
			} `json:"typed_config"`
		} `json:"path_match_policy"`
		Headers []struct {
			Name        string
			StringMatch struct{ Exact string } `json:"string_match"`
		}
	}
	Route *struct{ Cluster string }
}

func (r route) path() string {
	if r.Match.Path != "" {
		return r.Match.Path
	}
	return r.Match.PathMatchPolicy.TypedConfig.Template
}

func (r route) method() string {
	for _, h := range r.Match.Headers {
		if h.Name == ":method" {
			return h.StringMatch.Exact
		}
	}
	return ""
}

// routes reads the routes that an Envoy has in force.
func routes(t *testing.T, e *devenv.Envoy) []route {
	t.Helper()
	res, err := e.AdminClient().Get("http://envoy/config_dump?resource=dynamic_route_configs")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var dump any
	if err := json.Unmarshal(b, &dump); err != nil {
		t.Fatal(err)
	}
	var found []route
	collect(dump, func(list []any) {
		raw, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		var rs []route
		if err := json.Unmarshal(raw, &rs); err != nil {
			t.Fatal(err)
		}
		found = append(found, rs...)
	})
	return found
}

// collect calls f with every list under a key "routes".
func collect(v any, f func([]any)) {
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			if list, ok := sub.([]any); ok && key == "routes" {
				f(list)
				continue
			}
			collect(sub, f)
		}
	case []any:
		for _, sub := range v {
			collect(sub, f)
		}
	}
}

// rule: R003
func TestTheRoutesInForceAreTheContractsAndNoOthers(t *testing.T) {
	t.Parallel()
	plain := devtest.Gateway(t, devenv.GatewayConfig{APIServer: gw.APIServer, Redis: gw.Redis})
	var want []string
	for _, op := range api.Operations() {
		if !op.Planned {
			want = append(want, op.ID+" "+op.Method+" "+op.Path)
		}
	}
	var got []string
	for _, r := range routes(t, plain.Edges[0].Envoy) {
		if r.Route != nil && r.Name != "_unmatched" {
			got = append(got, r.Name+" "+r.method()+" "+r.path())
			if op, _ := api.Lookup(r.Name); !slices.Contains([]string{op.Backend, op.Backend + "-http", op.Backend + "-streams"}, r.Route.Cluster) {
				t.Errorf("%s goes to %s", r.Name, r.Route.Cluster)
			}
		} else if !strings.HasPrefix(r.Name, "_") {
			t.Errorf("a route %q that is no operation", r.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	got = slices.Compact(got) // each listener of the edge has them
	if !slices.Equal(got, want) {
		t.Errorf("routes in force:\n%s\nthe contract's:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	sampleLog(t)
	for _, op := range api.Operations() {
		_, a, err := try(t.Context(), op.Method, plain.URL+calls[op.ID], as("delegate"), onBehalfOf("ana"))
		if err != nil {
			t.Fatal(err)
		}
		// What is served may say itself that what was asked for is not there.
		noRoute := a.status == http.StatusNotFound && a.problem(t).Rule == "GP-EDGE-404" || a.status == http.StatusMethodNotAllowed
		if noRoute != op.Planned {
			t.Errorf("%s answers %d, planned %v", op.ID, a.status, op.Planned)
		}
	}
}
