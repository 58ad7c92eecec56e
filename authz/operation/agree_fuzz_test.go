package operation_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"hangar.io/glidepath/api"
)

// found is where a request led in a backend.
type found string

func (found) ServeHTTP(http.ResponseWriter, *http.Request) {}

// FuzzABackendReadsTheSame looks for a request that is decided as one operation
// or app and read as another by who answers it: a backend parses it with
// net/http and finds its handler with a ServeMux of the contract's paths.
func FuzzABackendReadsTheSame(f *testing.F) {
	tab := table(f)
	ops := api.Operations()
	mux := http.NewServeMux()
	for i, op := range ops {
		mux.Handle(op.Method+" "+op.Path, found(op.ID))
		path := fill(op.Path, valid)
		for _, target := range []string{
			path, path + "?app=gate-api", path + "?x=1&%61pp=gate-api", path + "?app=a&app=b", path + "?app=a;app=b", path + "/", path + "?",
			strings.Replace(path, "/v1/", "/v1//", 1), strings.Replace(path, "/v1/", "/v1/./", 1), strings.Replace(path, "gate", "%67ate", 1),
			strings.Replace(path, "gate-api", "..", 1), strings.Replace(path, "gate-api", "a%2fb", 1), strings.Replace(path, "gate-api", "{app}", 1),
		} {
			f.Add(i, target)
		}
	}
	f.Fuzz(func(t *testing.T, n int, target string) {
		if n < 0 || n >= len(ops) {
			return
		}
		op := ops[n]
		o, _ := tab.Lookup(op.ID)
		decided, err := o.Parse(op.Method, target)
		if err != nil || decided.Malformed != nil {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(op.Method + " " + target + " HTTP/1.1\r\nHost: backend\r\n\r\n")))
		if err != nil {
			t.Fatalf("%q was decided and no backend can read it: %v", target, err)
		}
		var app string
		catch := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { app = r.PathValue("app"); mux.ServeHTTP(w, r) })
		h, pattern := mux.Handler(r)
		if h != found(op.ID) {
			t.Fatalf("%q was decided as %s and is %v (%s) to a backend", target, op.ID, h, pattern)
		}
		one := http.NewServeMux()
		one.Handle(pattern, catch)
		one.ServeHTTP(nil, r)
		if op.Scope == api.ScopeFleet || op.ID == "whoami" {
			app = r.URL.Query().Get("app")
		}
		if app != decided.App {
			t.Errorf("%q was decided for app %q and names %q to a backend", target, decided.App, app)
		}
	})
}
