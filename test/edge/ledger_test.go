package edge

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"hangar.io/glidepath/api"
)

// goodToken is the only token that the ledger knows.
const goodToken = "VALID"

// ledger makes the authz of an edge strict and keeps what it allowed: a call is
// allowed for the good token alone, as the operation of its route, and each
// allow has an identity of its own. What reaches a backend is held against it.
type ledger struct {
	mu      sync.Mutex
	allowed map[string]allow // by identity
	refused int
}

// allow is one decision: exactly this may reach a backend, once.
type allow struct{ op, method, target, requestID string }

func (l *ledger) decide(r *authv3.CheckRequest) *authv3.CheckResponse {
	l.mu.Lock()
	defer l.mu.Unlock()
	extensions := r.GetAttributes().GetContextExtensions()
	if extensions["op"] == "_unmatched" {
		l.refused++
		if methods := extensions["allow"]; methods != "" {
			return deny(typev3.StatusCode_MethodNotAllowed, "GP-EDGE-405", `{"rule":"GP-EDGE-405","message":"another method"}`, "allow", methods)
		}
		return deny(typev3.StatusCode_NotFound, "GP-EDGE-404", `{"rule":"GP-EDGE-404","message":"nothing there"}`)
	}
	h := told(r)
	scheme, token, _ := strings.Cut(strings.Join(h["authorization"], ","), " ")
	if !strings.EqualFold(scheme, "Bearer") || token != goodToken {
		l.refused++
		return deny(typev3.StatusCode_Unauthorized, "GP-AUTH-001", `{"rule":"GP-AUTH-001","message":"no token"}`)
	}
	id := fmt.Sprintf("allow-%d", len(l.allowed)+1)
	http := r.GetAttributes().GetRequest().GetHttp()
	l.allowed[id] = allow{
		op: extensions["op"], method: http.GetMethod(), target: http.GetPath(), requestID: strings.Join(h["x-request-id"], ","),
	}
	return allowAs(id)
}

// startStrict starts an edge whose authz keeps a ledger, with every operation
// of the contract behind it.
func startStrict(t *testing.T) *edge {
	t.Helper()
	e := start(t, setup{planned: true})
	e.authz.ledger.Store(&ledger{allowed: map[string]allow{}})
	return e
}

// operations reads a request as a backend of any operation would.
var operations = func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, op := range api.Operations() {
		mux.Handle(op.Method+" "+op.Path, opHandler(op.ID))
	}
	return mux
}()

type opHandler string

func (opHandler) ServeHTTP(http.ResponseWriter, *http.Request) {}

// wantPaired holds what reached the backends against the ledger: each call was
// decided as exactly the operation that a backend reads from it, with that
// method and target, and no decision let two calls through. It gives the
// number of calls.
func (e *edge) wantPaired(t *testing.T) int {
	t.Helper()
	l := e.authz.ledger.Load()
	e.backend.mu.Lock()
	defer e.backend.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	used := map[string]bool{}
	for _, r := range e.backend.calls {
		ids := r.Header.Values("X-Glidepath-Identity")
		if len(ids) != 1 || used[ids[0]] {
			t.Errorf("%s %s reached a backend undecided, or twice: identity %q", r.Method, r.RequestURI, ids)
			continue
		}
		used[ids[0]] = true
		d, ok := l.allowed[ids[0]]
		h, _ := operations.Handler(r)
		op, _ := h.(opHandler)
		got := allow{op: string(op), method: r.Method, target: r.RequestURI, requestID: strings.Join(r.Header.Values("X-Request-Id"), ",")}
		if !ok || got != d {
			t.Errorf("a backend got %+v, decided was %+v", got, d)
		}
		for _, name := range []string{"Authorization", "X-Glidepath-Authorization", "Cookie", "X-Glidepath-Audit"} {
			if v := r.Header.Values(name); len(v) > 0 {
				t.Errorf("%s %s came with %s: %q", r.Method, r.RequestURI, name, v)
			}
		}
	}
	return len(e.backend.calls)
}

// wantAllPaired ends a test of calls that had this many answers: each has one
// line, and lines and backends agree with the ledger. It gives the number of
// calls that reached a backend.
func (e *edge) wantAllPaired(t *testing.T, answers int) int {
	t.Helper()
	e.fence(t)
	lines := e.lines(t)
	if len(lines) != answers+1 {
		t.Errorf("%d answers, %d lines", answers, len(lines)-1)
	}
	e.wantLinesPaired(t, lines)
	return e.wantPaired(t)
}

// wantLinesPaired holds the audit lines against the ledger: a call that a line
// says was allowed was allowed as that operation, and has no other line.
func (e *edge) wantLinesPaired(t *testing.T, lines []line) {
	t.Helper()
	l := e.authz.ledger.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	byRequest := map[string]allow{}
	for _, d := range l.allowed {
		byRequest[d.requestID] = d
	}
	seen := map[any]bool{}
	for _, line := range lines {
		id, _ := line["requestId"].(string)
		if id != "" && seen[id] {
			t.Errorf("the call %s has two lines", id)
		}
		seen[id] = true
		if line["msg"] != "audit" || line["op"] == nil || line["status"] == nil || line["time"] == nil {
			t.Errorf("the line lacks a key: %v", line)
		}
		d, ok := byRequest[id]
		if line["decision"] != "allow" {
			continue
		}
		if !ok || line["op"] != d.op || line["method"] != d.method {
			t.Errorf("the line %v is of no call that was allowed: %+v", line, d)
		}
	}
}
