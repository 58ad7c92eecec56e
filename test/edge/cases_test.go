package edge

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// The shared cases attack a gateway that serves /healthz and /public/ to
// everybody and /api/ to those with a token VALID. This one serves nothing to
// everybody. So /api/ is read as /v1/, where the fleet's runs are; /healthz and
// /public/ stay, as paths of no operation, out of which an attack climbs. Where
// a case says that a request must reach a backend, it must here.

// readCases reads one file of the shared cases, with its paths made ours.
func readCases(t *testing.T, name string, out any) {
	t.Helper()
	dir := os.Getenv("GLIDEPATH_CASES")
	if dir == "" {
		t.Skip("GLIDEPATH_CASES names no folder of shared cases")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "http", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

var ours = strings.NewReplacer(
	"/api/v1/admin", "/v1/live?at=1", // as long as it was: bodies are counted
	"/api/v1/", "/v1/", "api/v1/", "v1/", `/api\v1\`, `/v1\`, `api\v1\`, `v1\`, "Api/V1/", "V1/", "/api", "/v1",
)

// sharedCase is a request of the shared cases.
type sharedCase struct {
	Name, HTTP, Method, Target string
	Headers                    [][2]string
	Credentials, Expected      string
}

// bytes gives the request as it is sent over HTTP/1.1, with or without the
// token.
func (c sharedCase) bytes(token bool) string {
	var out strings.Builder
	out.WriteString(c.Method + " " + ours.Replace(c.Target) + " HTTP/1.1\r\n")
	host := false
	for _, h := range c.Headers {
		host = host || strings.EqualFold(h[0], "host")
		out.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	if !host {
		out.WriteString("Host: cicd.example.com\r\n")
	}
	if token {
		out.WriteString("Authorization: Bearer VALID\r\n")
	}
	out.WriteString("Connection: close\r\n\r\n")
	return out.String()
}

func (c sharedCase) has(header string) bool {
	for _, h := range c.Headers {
		if h[0] == header {
			return true
		}
	}
	return false
}

// Each path is tried by nobody and by somebody. Nobody reaches a backend; and
// what somebody reaches was decided as it was read.
func TestTheSharedPathAttacks(t *testing.T) {
	t.Parallel()
	var cases []sharedCase
	readCases(t, "path-attacks.json", &cases)
	if len(cases) < 100 {
		t.Fatalf("only %d cases", len(cases))
	}
	e := startStrict(t)
	var answers atomic.Int32
	t.Run("of nobody:", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.Method+" "+c.Target[:min(len(c.Target), 60)], func(t *testing.T) {
				t.Parallel()
				answers.Add(e.wantRefused(t, c.bytes(false)))
			})
		}
	})
	if n := e.wantPaired(t); n != 0 {
		t.Fatalf("%d requests without a token reached a backend", n)
	}
	t.Run("of somebody:", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.Method+" "+c.Target[:min(len(c.Target), 60)], func(t *testing.T) {
				t.Parallel()
				got := e.exchange(t, c.bytes(true), untilClosed)
				for _, a := range got {
					wantSound(t, a)
				}
				answers.Add(int32(len(got)))
			})
		}
	})
	if n := e.wantAllPaired(t, int(answers.Load())); n == 0 {
		t.Error("nothing reached a backend: nothing was shown")
	}
}

// wantRefused sends bytes to which no answer may come but refusals.
func (e *edge) wantRefused(t *testing.T, request string) int32 {
	t.Helper()
	got := e.exchange(t, request, untilClosed)
	for _, a := range got {
		wantSound(t, a)
		if a.StatusCode < 400 {
			t.Errorf("%.100q was answered %d", request, a.StatusCode)
		}
	}
	return int32(len(got))
}

// Envoy's normalizing of paths, as another project tests it. A path that keeps
// an escape is refused here; every other reaches authz in the form that Envoy
// would forward, and as a name in an operation's path a backend in that form.
func TestTheSharedPathsAreNormalizedOrRefused(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Normalization string
		Path          string `json:"request_path"`
		Upstream      string `json:"expected_upstream_path"`
	}
	readCases(t, "envoy-path-normalization.json", &cases)
	if len(cases) < 100 {
		t.Fatalf("only %d cases", len(cases))
	}
	e := startStrict(t)
	refusals := 0
	t.Run("path:", func(t *testing.T) {
		for _, c := range cases {
			if !strings.Contains(c.Normalization, "MERGE_SLASHES") { // the others normalize less than this edge does
				continue
			}
			if c.Path == "/..;/admin" {
				c.Upstream = "/admin" // this Envoy takes the parameter away and walks the dots
			}
			lower := strings.ToLower(c.Path)
			refused := strings.ContainsAny(c.Upstream, "%") || strings.Contains(c.Path, "#") || strings.Contains(lower, "%2f") || strings.Contains(lower, "%5c")
			if refused {
				refusals++
			}
			t.Run(c.Normalization+" "+c.Path, func(t *testing.T) {
				t.Parallel()
				e.wantNormalized(t, c.Path, c.Upstream, refused)
			})
		}
	})
	if n := e.wantPaired(t); refusals == 0 || n == 0 {
		t.Errorf("%d were refused and %d reached a backend: nothing was shown", refusals, n)
	}
}

func (e *edge) wantNormalized(t *testing.T, path, upstream string, refused bool) {
	t.Helper()
	const headers = " HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer VALID\r\nConnection: close\r\n\r\n"
	got := e.exchange(t, "GET "+path+headers, untilClosed)
	want := http.StatusNotFound
	if refused {
		want = http.StatusBadRequest
	}
	if len(got) != 1 || got[0].StatusCode != want {
		t.Fatalf("answered %v, want %d", statusesOf(got), want)
	}
	wantSound(t, got[0])
	if refused {
		return
	}
	if !e.authz.asked(upstream) {
		t.Errorf("authz was not asked about %s", upstream)
	}
	// The same as a name in an operation's path.
	for _, a := range e.exchange(t, "GET /v1/apps"+path+"/live"+headers, untilClosed) {
		wantSound(t, a)
	}
}

// asked says whether authz was ever asked about a path.
func (a *fakeAuthz) asked(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.checks {
		if c.GetAttributes().GetRequest().GetHttp().GetPath() == path {
			return true
		}
	}
	return false
}

// A header that a caller makes up changes nothing: without a token it helps
// nobody in, and with one the backend has the identity that was decided. What
// means nothing to this gateway passes, as no backend reads it.
func TestTheSharedHeaderAttacks(t *testing.T) {
	t.Parallel()
	var cases []sharedCase
	readCases(t, "header-attacks.json", &cases)
	if len(cases) < 50 {
		t.Fatalf("only %d cases", len(cases))
	}
	e := startStrict(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			before := e.wantPaired(t)
			if c.HTTP == "2" {
				e.sharedHTTP2(t, c)
			} else {
				// A break of a line in a value is sent as it is: it begins
				// another header, which a caller may send as well.
				request := c.bytes(false)
				if c.has("content-length") {
					request += strings.Repeat("x", 10_000_000)
				}
				for _, a := range e.exchange(t, request, 1) {
					wantSound(t, a)
				}
			}
			reached := e.wantPaired(t) - before
			switch c.Expected {
			case "must_reach_backend", "backend_must_see_verified_identity_only":
				if reached != 1 {
					t.Errorf("%d requests reached a backend", reached)
				}
			case "must_not_reach_backend":
				// The authz of these tests takes the token it knows; what is
				// around it, the real one is asked about.
				if reached != 0 && !c.has("authorization") {
					t.Errorf("%d requests reached a backend", reached)
				}
			}
		})
	}
}

func (e *edge) sharedHTTP2(t *testing.T, c sharedCase) {
	t.Helper()
	var fields [][2]string
	for _, h := range c.Headers {
		fields = append(fields, [2]string{h[0], ours.Replace(h[1])})
	}
	conn := e.dialHTTP2(t)
	if err := conn.open(1, true, fields...); err != nil {
		t.Fatal(err)
	}
	if got := conn.outcome(t, 1); got == "200" {
		t.Errorf("answered %s", got)
	}
}

// Each stream of bytes, as it is and with the token in its first request. The
// request that hides in it has none, so that whoever reads it refuses it.
func TestTheSharedSmuggling(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Name string
		Raw  string `json:"raw_base64"`
	}
	readCases(t, "smuggling-raw.json", &cases)
	if len(cases) < 30 {
		t.Fatalf("only %d cases", len(cases))
	}
	e := startStrict(t)
	t.Run("is one request, or none:", func(t *testing.T) {
		for _, c := range cases {
			raw, err := base64.StdEncoding.DecodeString(c.Raw)
			if err != nil {
				t.Fatal(err)
			}
			anonymous := strings.Replace(ours.Replace(string(raw)), "/public/x", "/v1/apps/shop/cicd/validations", 1)
			allowed := anonymous
			if first, rest, _ := strings.Cut(anonymous, "Host: cicd.example.com\r\n"); strings.Contains(first, "validations") {
				allowed = first + "Host: cicd.example.com\r\nAuthorization: Bearer VALID\r\n" + rest
			}
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				for _, request := range []string{anonymous, allowed} {
					for _, a := range e.exchange(t, request, 1) {
						wantSound(t, a)
					}
				}
			})
		}
	})
	if n := e.wantPaired(t); n == 0 {
		t.Error("nothing reached a backend: nothing was shown")
	}
	if n := e.backend.count("at=1"); n != 0 {
		t.Errorf("the hidden request reached a backend %d times", n)
	}
}

// What must work still does, so that refusing everything is no way to pass.
func TestTheSharedPositiveControls(t *testing.T) {
	t.Parallel()
	var cases []sharedCase
	readCases(t, "positive-controls.json", &cases)
	e := startStrict(t)
	served := 0
	for _, c := range cases {
		// Our operations for theirs; labelSelector stands for any query.
		switch {
		case strings.HasPrefix(c.Target, "/api/v1/events"):
			c.Target = "/v1/apps/shop/cicd/validations" // a POST with a body in chunks
		case strings.HasPrefix(c.Target, "/api/v1/logs/stream"):
			c.Target = "/v1/apps/shop/live/stream"
		}
		request := c.bytes(c.Credentials == "valid")
		if c.has("transfer-encoding") {
			request += "2\r\n{}\r\n0\r\n\r\n"
		}
		got := e.exchange(t, request, 1)
		for _, a := range got {
			wantSound(t, a)
		}
		if c.Expected != "must_reach_backend" {
			continue
		}
		served++
		if len(got) != 1 || got[0].StatusCode != http.StatusOK {
			t.Errorf("%s %s: answered %v", c.Method, c.Target, statusesOf(got))
		}
	}
	if n := e.wantPaired(t); served == 0 || n != served {
		t.Errorf("%d of %d reached a backend", n, served)
	}
}
