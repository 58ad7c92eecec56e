package edge

import (
	"net/http"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"hangar.io/glidepath/internal/problem"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	const notFound, badPath, refused = "404", "400 by a route", "400 before any route"
	for name, tt := range map[string]struct{ path, want string }{
		"an operation without variables":             {"/v1/whoami", "whoami"},
		"an operation of an app":                     {"/v1/apps/shop/live", "listLive"},
		"a query does not matter":                    {"/v1/live?limit=%31", "listLiveRuns"},
		"a plain path is not a prefix":               {"/v1/live/taskruns", "listLiveTaskRuns"},
		"several slashes are one":                    {"/v1//apps///shop/live", "listLive"},
		"dots are walked":                            {"/v1/apps/../live", "listLiveRuns"},
		"encoded dots are walked":                    {"/v1/apps/%2e%2e/live", "listLiveRuns"},
		"a dot stays where it is":                    {"/v1/./live", "listLiveRuns"},
		"dots do not climb above the root":           {"/../../v1/live", "listLiveRuns"},
		"a backslash is a slash":                     {`/v1/apps\shop\live`, "listLive"},
		"an escape of a plain character is that one": {"/v1/apps/sho%70/live", "listLive"},
		"a semicolon stays in the name, for authz":   {"/v1/apps/shop;x/live", "listLive"},
		"upper case stays in the name, for authz":    {"/v1/apps/SHOP/live", "listLive"},
		"a trailing slash is another path":           {"/v1/whoami/", notFound},
		"a trailing dot segment is a trailing slash": {"/v1/whoami/.", notFound},
		"upper case is another path":                 {"/V1/whoami", notFound},
		"an empty name is none":                      {"/v1/apps//live", notFound},
		"one segment too many":                       {"/v1/apps/shop/x/live", notFound},
		"a planned operation has no route":           {"/v1/apps/shop/releases", notFound},
		"the root is nothing":                        {"/", notFound},
		"an internal path is nothing":                {"/internal/events/tap", notFound},
		"the probes are nothing":                     {"/healthz", notFound},
		"the metrics are nothing":                    {"/metrics", notFound},
		"Envoy's own paths are nothing":              {"/config_dump", notFound},
		"an encoded slash is refused":                {"/v1/apps/a%2fb/live", badPath},
		"dots between encoded slashes are refused":   {"/v1/apps/a%2f..%2Fshop/live", badPath},
		"an encoded backslash is refused":            {"/v1/apps/a%5cb/live", badPath},
		"an encoded percent is refused":              {"/v1/apps/a%25b/live", badPath},
		"an encoded space is refused":                {"/v1/apps/a%20b/live", badPath},
		"an encoded percent of a plain one is, too":  {"/v1/apps/a%2541/live", badPath},
		"an encoded line break is refused":           {"/v1/apps/a%0d%0ab/live", badPath},
		"an escape outside any operation is refused": {"/nothing/%20", badPath},
		"an encoded zero is refused":                 {"/v1/apps/a%00/live", refused},
		"half an escape is refused":                  {"/v1/apps/a%2/live", badPath},
		"a fragment is refused":                      {"/v1/live#top", refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := e.send(t, "GET "+tt.path+" HTTP/1.1\r\nHost: edge\r\nConnection: close\r\n\r\n")
			switch tt.want {
			case refused:
				wantProblem(t, resp, problem.EdgeBadRequest)
				if trace := resp.Header.Get("X-Glidepath-Trace-Id"); trace != "" {
					t.Errorf("a route was chosen: the answer has trace %s", trace)
				}
				return
			case badPath:
				wantProblem(t, resp, problem.EdgeBadRequest)
				e.lineOf(t, resp).want(t, line{"op": "_badpath", "status": 400.0, "rule": "GP-EDGE-400", "decision": "deny"})
			case notFound:
				if resp.StatusCode != http.StatusNotFound {
					t.Errorf("status %d", resp.StatusCode)
				}
				e.lineOf(t, resp).want(t, line{"op": "_unmatched", "tier": nil, "rule": "GP-EDGE-404", "decision": "deny"})
			default:
				if resp.StatusCode != http.StatusOK {
					t.Errorf("status %d", resp.StatusCode)
				}
				e.lineOf(t, resp).want(t, line{"op": tt.want, "tier": "T0", "decision": "allow", "status": 200.0})
			}
			if resp.Header.Get("X-Glidepath-Trace-Id") == "" {
				t.Error("the answer has no trace id")
			}
		})
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	for name, tt := range map[string]struct{ method, path, allow string }{
		"a POST of a read":                    {"POST", "/v1/apps/shop/live", "GET"},
		"HEAD is not GET":                     {"HEAD", "/v1/live", "GET"},
		"OPTIONS is no operation":             {"OPTIONS", "/v1/live", "GET"},
		"TRACE is no operation":               {"TRACE", "/v1/whoami", "GET"},
		"PATCH is no operation":               {"PATCH", "/v1/whoami", "GET"},
		"a GET of a write":                    {"GET", "/v1/apps/shop/pipelineruns/x/rerun", "POST"},
		"a lower-case path of a write's":      {"DELETE", "/v1/apps/shop/environments/prod/promote", "POST"},
		"no method helps where there is none": {"POST", "/v1/nothing", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := e.call(t, tt.method, tt.path, nil)
			want := http.StatusMethodNotAllowed
			if tt.allow == "" {
				want = http.StatusNotFound
			}
			if resp.StatusCode != want || resp.Header.Get("Allow") != tt.allow {
				t.Errorf("status %d, Allow %q, want %d, %q", resp.StatusCode, resp.Header.Get("Allow"), want, tt.allow)
			}
			e.lineOf(t, resp).want(t, line{"op": "_unmatched", "method": tt.method, "decision": "deny"})
			check := e.authz.last(func(r *authv3.CheckRequest) bool {
				h := r.GetAttributes().GetRequest().GetHttp()
				return h.GetMethod() == tt.method && h.GetPath() == tt.path
			})
			if check == nil || check.GetAttributes().GetContextExtensions()["allow"] != tt.allow {
				t.Errorf("authz was told %v", check)
			}
		})
	}
	t.Run("a method that HTTP does not know is a protocol error", func(t *testing.T) {
		t.Parallel()
		wantProblem(t, e.send(t, "BREW /v1/live HTTP/1.1\r\nHost: edge\r\n\r\n"), problem.EdgeBadRequest)
	})
	t.Run("nothing is behind a path that authz should not have allowed", func(t *testing.T) {
		t.Parallel()
		resp := e.get(t, "/v1/nothing", "Authorization", tokenAllow)
		wantProblem(t, resp, problem.EdgeNotFound)
		e.lineOf(t, resp).want(t, line{"op": "_unmatched", "rule": "GP-EDGE-404", "decision": "allow"})
	})
}
