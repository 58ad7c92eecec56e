package extauthz_test

import (
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/problem"
)

// FuzzCheckOfAnyMessage looks for a message, of whatever fields, that panics,
// that is answered in two ways, or that is allowed though nothing in it was
// decided: each field of a CheckRequest may hold anything here, where the edge
// would not send it.
func FuzzCheckOfAnyMessage(f *testing.F) {
	e, _ := newStack(f)
	add := func(req *authv3.CheckRequest) {
		raw, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	good := func(change func(*authv3.AttributeContext)) *authv3.CheckRequest {
		req := request("listLive", "GET", "/v1/apps/shop/live", map[string]string{"authorization": "Bearer reader-token"})
		change(req.GetAttributes())
		return req
	}
	header := func(name, value string) *corev3.HeaderValue {
		return &corev3.HeaderValue{Key: name, RawValue: []byte(value)}
	}
	add(&authv3.CheckRequest{})
	for _, change := range []func(*authv3.AttributeContext){
		func(*authv3.AttributeContext) {},
		func(a *authv3.AttributeContext) { a.Request = nil },
		func(a *authv3.AttributeContext) { a.Request.Http = nil },
		func(a *authv3.AttributeContext) { a.ContextExtensions = nil },
		func(a *authv3.AttributeContext) { a.ContextExtensions["op"] = "_unmatched" },
		func(a *authv3.AttributeContext) {
			a.ContextExtensions = map[string]string{"op": "_unmatched", "allow": "GET"}
		},
		func(a *authv3.AttributeContext) { a.ContextExtensions["op"] = "getRun" },
		func(a *authv3.AttributeContext) { a.Request.Http.Headers[":path"] = "/v1/live" },
		func(a *authv3.AttributeContext) { a.Request.Http.Headers[":method"] = "POST" },
		func(a *authv3.AttributeContext) { a.Request.Http.Path = "/v1/apps/shop/live?\x00" },
		func(a *authv3.AttributeContext) {
			a.Request.Http.HeaderMap = &corev3.HeaderMap{Headers: []*corev3.HeaderValue{header("authorization", "Bearer tower-token")}}
		},
		func(a *authv3.AttributeContext) {
			a.Request.Http.Headers = nil
			a.Request.Http.HeaderMap = &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
				nil, header("authorization", "Bearer tower-token"), header("x-glidepath-on-behalf-of", "a\xff"),
			}}
		},
		func(a *authv3.AttributeContext) {
			a.Source = &authv3.AttributeContext_Peer{Principal: "spiffe://admin", Service: "livehub"}
		},
		func(a *authv3.AttributeContext) { a.ContextExtensions["limit"] = "defaults 1/1h 1" },
		func(a *authv3.AttributeContext) { a.ContextExtensions["callerLimit"] = "defaults 1/1h 1" },
		func(a *authv3.AttributeContext) { a.ContextExtensions["limit"] = "defaults 1/0s 1" },
	} {
		add(good(change))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		req := &authv3.CheckRequest{}
		if err := proto.Unmarshal(raw, req); err != nil {
			return
		}
		e := e.fresh(t) // what was counted of another input decides nothing here
		wantOneAnswer(t, e, req, e.check(t, req))
		wantOneAnswer(t, e, req, e.check(t, req)) // now it may be over a limit
	})
}

// wantOneAnswer checks that a message is allowed or refused, never both, that
// its line says so, and that who is allowed had a token. A call over its limit
// was allowed and is refused.
func wantOneAnswer(t *testing.T, e *edge, req *authv3.CheckRequest, resp *authv3.CheckResponse) {
	t.Helper()
	if n := counter(t, e.reg, "glidepath_authz_panics_total"); n != 0 {
		t.Fatalf("a panic at %v", req)
	}
	allowed, refused := resp.GetOkResponse() != nil, resp.GetDeniedResponse() != nil
	if allowed == refused || allowed != (resp.GetStatus().GetCode() == 0) {
		t.Fatalf("neither allowed nor refused: %v", resp)
	}
	m := metadataOf(resp)
	if over := m["rule"] == problem.EdgeTooManyRequests.ID; (m["decision"] == "allow") != (allowed || over) || (m["decision"] == "deny") != (refused && !over) {
		t.Errorf("the line would say %v", m)
	}
	for k, v := range m {
		if v == "" {
			t.Errorf("the line would have an empty %s", k)
		}
	}
	http, op := req.GetAttributes().GetRequest().GetHttp(), req.GetAttributes().GetContextExtensions()["op"]
	if refused {
		if b := bodyOf(t, resp); m["rule"] != b.Rule || !strings.HasPrefix(b.Rule, "GP-") || b.Message == "" {
			t.Errorf("refused with %+v, the line would say %v", b, m)
		}
		return
	}
	if !slices.ContainsFunc(api.Operations(), func(o api.Operation) bool { return o.ID == op }) {
		t.Fatalf("%q was allowed", op)
	}
	tokens := slices.DeleteFunc(tokensOf(http), func(v string) bool {
		return !strings.Contains(v, "reader-token") && !strings.Contains(v, "tower-token")
	})
	if len(tokens) == 0 {
		t.Errorf("allowed without a token: %v", req)
	}
}

// tokensOf gives every value of the headers that may hold a token.
func tokensOf(r *authv3.AttributeContext_HttpRequest) []string {
	var out []string
	for _, name := range []string{"authorization", "x-glidepath-authorization"} {
		out = append(out, r.GetHeaders()[name])
		for _, h := range r.GetHeaderMap().GetHeaders() {
			if h.GetKey() == name {
				out = append(out, h.GetValue(), string(h.GetRawValue()))
			}
		}
	}
	return out
}
