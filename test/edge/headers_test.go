package edge

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
)

// received gives the headers that the backend got of a call.
func received(t *testing.T, resp *http.Response) http.Header {
	t.Helper()
	var h http.Header
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTheBackendGetsNoHeaderThatTheCallerMadeUp(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	for _, name := range []string{
		"X-Glidepath-Audit", "X-Glidepath-Trace-Id", "X-Glidepath-Internal-Anything",
		"X-Envoy-Original-Path", "X-Envoy-Upstream-Rq-Timeout-Ms", "X-Envoy-Internal", "X-Envoy-External-Address",
		"X-Envoy-Decorator-Operation", "X-Envoy-Max-Retries", "X-Envoy-Retry-On", "X-Envoy-Expected-Rq-Timeout-Ms",
		"X-Client-Trace-Id", "Forwarded", "X-Forwarded-Client-Cert", "X-Forwarded-Host", "X-Forwarded-Path",
		"X-Forwarded-Prefix", "X-Http-Method-Override", "X-Original-Url", "X-Rewrite-Url",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := received(t, e.get(t, "/v1/live", name, "spoofed")).Values(name); len(got) != 0 {
				t.Errorf("the backend got %q", got)
			}
		})
	}
	t.Run("the identity is authz's, however often the caller sends one", func(t *testing.T) {
		t.Parallel()
		got := received(t, e.get(t, "/v1/live", "X-Glidepath-Identity", "me", "x-glidepath-identity", "me too"))
		if got := got.Values("X-Glidepath-Identity"); !slices.Equal(got, []string{identity}) {
			t.Errorf("the backend got %q", got)
		}
	})
	t.Run("the identity is nobody's when authz gives none", func(t *testing.T) {
		t.Parallel()
		got := received(t, e.get(t, "/v1/live", "Authorization", tokenBare, "X-Glidepath-Identity", "me"))
		if got := got.Values("X-Glidepath-Identity"); len(got) != 0 {
			t.Errorf("the backend got %q", got)
		}
	})
	t.Run("a header that means nothing to us passes", func(t *testing.T) {
		t.Parallel()
		if got := received(t, e.get(t, "/v1/live", "X-Glidepath-Dry-Run", "true", "If-None-Match", `"x"`)); got.Get("X-Glidepath-Dry-Run") != "true" || got.Get("If-None-Match") != `"x"` {
			t.Errorf("the backend got %v", got)
		}
	})
}

// rule: R413
func TestCredentialsEndAtTheEdge(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	// The authz of these tests removes nothing, so what is removed is the
	// edge's doing.
	resp := e.get(t, "/v1/live?token=s3cr3t", "Authorization", "Bearer s3cr3t", "X-Glidepath-Authorization", "Bearer s3cr3t",
		"X-Glidepath-On-Behalf-Of", "ada", "Cookie", "session=s3cr3t", "Proxy-Authorization", "Basic s3cr3t", "Idempotency-Key", "s3cr3t")
	got := received(t, resp)
	for _, name := range []string{"Authorization", "X-Glidepath-Authorization", "X-Glidepath-On-Behalf-Of", "Cookie", "Proxy-Authorization"} {
		if v := got.Values(name); len(v) != 0 {
			t.Errorf("the backend got %s: %q", name, v)
		}
	}
	e.lineOf(t, resp)
	log, err := os.ReadFile(e.envoy.AccessLog)
	if err != nil || strings.Contains(string(log), "s3cr3t") {
		t.Errorf("a credential is in the audit log (%v)", err)
	}
}

func TestAuthzIsToldNoMoreThanItReads(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	e.get(t, "/v1/live?told", "Authorization", tokenAllow, "X-Glidepath-On-Behalf-Of", "ada", "X-Glidepath-On-Behalf-Of", "eve", "Cookie", "session=1", "X-Other", "1", "Idempotency-Key", "k")
	check := e.authz.last(func(r *authv3.CheckRequest) bool {
		return r.GetAttributes().GetRequest().GetHttp().GetPath() == "/v1/live?told"
	})
	got := told(check)
	if !slices.Equal(got["authorization"], []string{tokenAllow}) || !slices.Equal(got["x-glidepath-on-behalf-of"], []string{"ada", "eve"}) {
		t.Errorf("authz was not told the credentials: %v", got)
	}
	for _, name := range []string{"cookie", "x-other", "idempotency-key"} {
		if _, ok := got[name]; ok {
			t.Errorf("authz was told %s", name)
		}
	}
	if op := check.GetAttributes().GetContextExtensions()["op"]; op != "listLiveRuns" {
		t.Errorf("authz was told op %q", op)
	}
}

func TestAStreamsBackendGetsTheHeadersThatItReadsAndNoOthers(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	sent := map[string]string{
		"Accept": "text/event-stream", "Accept-Encoding": "gzip", "Accept-Language": "en", "Cache-Control": "no-cache", "Dnt": "1",
		"Origin": "http://board.test", "Pragma": "no-cache", "Priority": "u=1, i", "Referer": "http://board.test/board",
		"Sec-Ch-Ua": `"Chromium";v="142"`, "Sec-Ch-Ua-Mobile": "?0", "Sec-Ch-Ua-Platform": "Linux", "Sec-Fetch-Dest": "empty",
		"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Storage-Access": "active", "Sec-Gpc": "1", "X-Forwarded-For": "192.0.2.1",
	}
	read := map[string]string{"Last-Event-Id": "1-1", "User-Agent": "board", "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	var headers []string
	for _, some := range []map[string]string{sent, read} {
		for name, value := range some {
			headers = append(headers, name, value)
		}
	}
	call := received(t, e.get(t, "/v1/apps/shop/live", headers...))
	stream := received(t, e.get(t, "/v1/apps/shop/live/stream", headers...))
	for name := range sent {
		if call.Get(name) == "" || stream.Get(name) != "" {
			t.Errorf("of %s a call's backend got %q, and a stream's %q", name, call.Values(name), stream.Values(name))
		}
	}
	for name := range read {
		if stream.Get(name) == "" {
			t.Errorf("a stream's backend got no %s", name)
		}
	}
}

func TestTheRequestIDIsTheEdges(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	resp := e.get(t, "/v1/live", "X-Request-Id", "mine")
	backend := received(t, resp).Values("X-Request-Id")
	if len(backend) != 1 || backend[0] == "mine" || backend[0] == "" {
		t.Fatalf("the backend got %q", backend)
	}
	e.lineOf(t, resp).want(t, line{"requestId": backend[0]})
}

func TestTheAnswerDoesNotSayWhatMadeIt(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	for name, resp := range map[string]*http.Response{
		"a backend's answer": e.get(t, "/v1/live"),
		"authz's refusal":    e.get(t, "/v1/live", "Authorization", tokenDeny),
		"the edge's refusal": e.get(t, "/v1/apps/a%20b/live"),
	} {
		for header := range resp.Header {
			if header == "Server" || header == "Via" || strings.HasPrefix(header, "X-Envoy-") {
				t.Errorf("%s has the header %s", name, header)
			}
		}
	}
}
