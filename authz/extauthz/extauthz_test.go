package extauthz_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc/metadata"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/bucket"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/extauthz"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// decider is whatever a test has it decide.
type decider func(decision.Request) decision.Decision

func (d decider) Decide(_ context.Context, r decision.Request) decision.Decision { return d(r) }

// edge is a server with real keys.
type edge struct {
	*extauthz.Server

	reg    *prometheus.Registry
	keys   string
	config extauthz.Config
}

// fresh gives the same edge, none of whose callers has called yet.
func (e *edge) fresh(t testing.TB) *edge {
	t.Helper()
	out := *e
	out.reg = prometheus.NewRegistry()
	out.config.Limits, out.config.Metrics = bucket.New(bucket.Config{}), extauthz.NewMetrics(out.reg)
	var err error
	if out.Server, err = extauthz.NewServer(out.config); err != nil {
		t.Fatal(err)
	}
	return &out
}

func newEdge(t testing.TB, d extauthz.Decider) *edge {
	t.Helper()
	return newTracedEdge(t, d, nil)
}

func newTracedEdge(t testing.TB, d extauthz.Decider, tracing *telemetry.Tracing) *edge {
	t.Helper()
	dir := t.TempDir()
	e := &edge{reg: prometheus.NewRegistry(), keys: filepath.Join(dir, "public")}
	if err := identity.GenerateKeyPair(filepath.Join(dir, "key.pem"), e.keys); err != nil {
		t.Fatal(err)
	}
	signer, err := identity.LoadSigner(filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	e.config = extauthz.Config{
		Operations: operations(t), Decider: d, Signer: signer, Metrics: extauthz.NewMetrics(e.reg), Tracing: tracing,
	}
	return e.fresh(t)
}

func operations(t testing.TB) *operation.Table {
	t.Helper()
	ops, err := operation.NewTable(api.Operations())
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

// claims verifies the identity of an answer as its backend does.
func (e *edge) claims(t testing.TB, resp *authv3.CheckResponse, backend string) *identity.Claims {
	t.Helper()
	v, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: e.keys, Backend: backend})
	if err != nil {
		t.Fatal(err)
	}
	c, err := v.Verify(identityOf(t, resp))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func identityOf(t testing.TB, resp *authv3.CheckResponse) string {
	t.Helper()
	h := resp.GetOkResponse().GetHeaders()
	if len(h) != 1 || h[0].GetHeader().GetKey() != "x-glidepath-identity" {
		t.Fatalf("headers: %v", h)
	}
	if h[0].GetAppendAction() != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
		t.Errorf("the identity is added beside what a caller sent: %v", h[0])
	}
	return h[0].GetHeader().GetValue()
}

func (e *edge) check(t testing.TB, req *authv3.CheckRequest) *authv3.CheckResponse {
	t.Helper()
	resp, err := e.Check(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// request is a check as Envoy makes it, with a token.
func request(op, method, path string, headers map[string]string) *authv3.CheckRequest {
	all := map[string]string{"authorization": "Bearer x"}
	maps.Copy(all, headers)
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: method, Path: path, Headers: all,
		}},
		ContextExtensions: map[string]string{"op": op},
	}}
}

func metadataOf(resp *authv3.CheckResponse) map[string]string {
	out := map[string]string{}
	for k, v := range resp.GetDynamicMetadata().GetFields() {
		out[k] = v.GetStringValue()
	}
	return out
}

func bodyOf(t testing.TB, resp *authv3.CheckResponse) problem.Body {
	t.Helper()
	var b problem.Body
	if err := json.Unmarshal([]byte(resp.GetDeniedResponse().GetBody()), &b); err != nil {
		t.Fatalf("%q: %v", resp.GetDeniedResponse().GetBody(), err)
	}
	return b
}

func headersOf(resp *authv3.CheckResponse) map[string]string {
	out := map[string]string{}
	for _, h := range resp.GetDeniedResponse().GetHeaders() {
		out[h.GetHeader().GetKey()] = h.GetHeader().GetValue()
	}
	return out
}

func caller(t testing.TB, name string, groups ...string) *authn.Caller {
	t.Helper()
	c, err := authn.NewClusterCaller(authn.Facts{Username: name, Groups: groups, Audiences: []string{"https://kubernetes.default.svc"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// cluster lets its caller do everything. It is decided for real.
type cluster struct {
	caller    *authn.Caller
	delegates []string
	namespace *namespaces.Namespace // in place of the app's
}

func (c *cluster) Authenticate(context.Context, token.Token, authn.Purpose) (*authn.Caller, error) {
	return c.caller, nil
}

func (*cluster) Allowed(context.Context, *authn.Caller, review.Right, authn.Purpose) (bool, error) {
	return true, nil
}

func (c *cluster) Resolve(app string) (namespaces.Resolution, error) {
	if c.namespace != nil {
		return namespaces.Resolution{Namespace: *c.namespace}, nil
	}
	return namespaces.Resolution{Namespace: namespaces.Namespace{Name: "app-" + app + "-cicd", UID: "uid-of-" + app}}, nil
}

func (c *cluster) Decide(ctx context.Context, r decision.Request) decision.Decision {
	return decision.New(decision.Config{Authenticator: c, Access: c, Namespaces: c, Delegates: c.delegates}).Decide(ctx, r)
}

func allowing(c *authn.Caller) *cluster { return &cluster{caller: c} }

func refusing(p *problem.Error, change ...func(*decision.Decision)) decider {
	return func(r decision.Request) decision.Decision {
		d := decision.Decision{Operation: r.Operation, Refusal: p}
		for _, f := range change {
			f(&d)
		}
		return d
	}
}

func TestAnAllowedReadCarriesItsIdentity(t *testing.T) {
	e := newEdge(t, &cluster{caller: caller(t, "reader"), delegates: []string{"reader"}})
	resp := e.check(t, request("listLive", "GET", "/v1/apps/shop/live", map[string]string{"x-glidepath-on-behalf-of": "ana"}))
	if resp.GetStatus().GetCode() != 0 || resp.GetDeniedResponse() != nil {
		t.Fatalf("refused: %v", resp)
	}
	c := e.claims(t, resp, "livehub")
	if c.Subject != "reader" || c.Op != "listLive" || c.Tier != "T0" || c.App != "shop" || c.Namespace != "app-shop-cicd" ||
		c.NamespaceUID != "uid-of-shop" || c.OnBehalfOf != "ana" || c.Method != "" || c.TargetHash != "" || c.Who != nil || c.ID == "" {
		t.Errorf("got %+v", c)
	}
	if life := c.ExpiresAt.Sub(c.IssuedAt.Time); life <= 0 || life > 60*time.Second {
		t.Errorf("it lives %s", life)
	}
	if m := metadataOf(resp); len(m) != 4 || m["decision"] != "allow" || m["app"] != "shop" || m["caller"] != "reader" || m["onBehalfOf"] != "ana" {
		t.Errorf("metadata: %v", m)
	}
}

func TestTheIdentityIsForTheOperationsBackendAlone(t *testing.T) {
	e := newEdge(t, allowing(caller(t, "reader")))
	for _, op := range api.Operations() {
		path := strings.NewReplacer("{app}", "shop", "{result}", "4f0c7d1e-2b6a-4c39-9d5e-8a1f3b2c7e90", "{taskRun}", "t", "{id}", "i",
			"{container}", "c", "{chainId}", "c", "{name}", "n", "{env}", "e").Replace(op.Path)
		c := e.claims(t, e.check(t, request(op.ID, op.Method, path, nil)), op.Backend)
		if c.Op != op.ID || c.Tier != string(op.Tier) || len(c.Audience) != 1 {
			t.Errorf("%s: %+v", op.ID, c)
		}
		if (c.Who != nil) != (op.ID == "whoami") {
			t.Errorf("%s: who %v", op.ID, c.Who)
		}
		if bound := c.Method != "" && c.TargetHash != ""; bound != (op.Tier != "T0") {
			t.Errorf("%s: bound to a request: %v", op.ID, bound)
		}
	}
}

func TestAWritesIdentityIsForOneRequest(t *testing.T) {
	e := newEdge(t, allowing(caller(t, "operator")))
	const path = "/v1/apps/shop/pipelineruns/a/cancel?x=1"
	one := e.claims(t, e.check(t, request("cancelPipelineRun", "POST", path, nil)), "writes")
	two := e.claims(t, e.check(t, request("cancelPipelineRun", "POST", path, nil)), "writes")
	if one.ID == two.ID {
		t.Error("two writes share an identity")
	}
	if one.Method != "POST" || one.TargetHash != identity.HashTarget(path) {
		t.Errorf("got %+v", one)
	}
	if life := one.ExpiresAt.Sub(one.IssuedAt.Time); life <= 0 || life > 30*time.Second {
		t.Errorf("it lives %s", life)
	}
}

func TestReadsShareAnIdentityForHalfItsLifeAndOnlyWithTheirLikes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := caller(t, "reader")
		c := &cluster{caller: reader, delegates: []string{"reader"}}
		e := newEdge(t, c)
		get := func(op, path, person string) string {
			o, _ := api.Lookup(op)
			return identityOf(t, e.check(t, request(op, o.Method, path, map[string]string{"x-glidepath-on-behalf-of": person})))
		}
		const path = "/v1/apps/shop/live"
		first := get("listLive", path, "")
		time.Sleep(30*time.Second - time.Nanosecond)
		if get("listLive", path, "") != first {
			t.Error("it was made anew within half its life")
		}
		time.Sleep(time.Nanosecond)
		second := get("listLive", path, "")
		if second == first {
			t.Error("it was given out after half its life")
		}
		seen := map[string]string{second: "the same"}
		other := func(what, token string) {
			t.Helper()
			if like, twice := seen[token]; twice {
				t.Errorf("%s has the identity of %s", what, like)
			}
			seen[token] = what
			c.caller, c.namespace = reader, nil
		}
		other("another app", get("listLive", "/v1/apps/other/live", ""))
		other("another operation", get("streamLiveRuns", "/v1/apps/shop/live/stream", ""))
		c.namespace = &namespaces.Namespace{Name: "app-shop-cicd", UID: "uid-of-shop"}
		other("another app of the same namespace", get("listLive", "/v1/apps/third/live", ""))
		c.namespace = &namespaces.Namespace{Name: "infra-shop-cicd", UID: "uid-of-shop"}
		other("another namespace", get("listLive", path, ""))
		c.namespace = &namespaces.Namespace{Name: "app-shop-cicd", UID: "another"}
		other("an app made again", get("listLive", path, ""))
		c.caller = caller(t, "other")
		other("another caller", get("listLive", path, ""))
		other("another person", get("listLive", path, "ana"))
		other("whoami", get("whoami", "/v1/whoami", ""))
		c.caller = caller(t, "reader", "g")
		other("whoami of other groups", get("whoami", "/v1/whoami", ""))
		if get("listLive", path, "") != second {
			t.Error("the first was lost on the way")
		}
	})
}

// rule: R071
func TestWhoamisIdentitySaysWhoTheCallerIs(t *testing.T) {
	e := newEdge(t, &cluster{caller: caller(t, "hangar:prod:tower", "a", "b"), delegates: []string{"hangar:prod:tower"}})
	c := e.claims(t, e.check(t, request("whoami", "GET", "/v1/whoami", nil)), "authz")
	if c.Subject != "hangar:prod:tower" || c.Who == nil || !slices.Equal(c.Who.Groups, []string{"a", "b"}) || c.Who.Kind != "user" || !c.Who.Delegate ||
		!slices.Equal(c.Who.Audiences, []string{"https://kubernetes.default.svc"}) {
		t.Errorf("got %+v, %+v", c, c.Who)
	}
}

func TestAnIdentityThatNoRequestCanCarryRefusesTheCall(t *testing.T) {
	groups := make([]string, 4000)
	for i := range groups {
		groups[i] = "a-group-of-this-caller"
	}
	e := newEdge(t, allowing(caller(t, "reader", groups...)))
	if b := bodyOf(t, e.check(t, request("whoami", "GET", "/v1/whoami", nil))); b.Rule != "GP-API-502" {
		t.Errorf("got %+v", b)
	}
	// Everything else does not carry them.
	e.claims(t, e.check(t, request("getContract", "GET", "/v1/contract", nil)), "authz")
}

func TestARefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal   *problem.Error
		status    int
		challenge string
	}{
		"no token":      {problem.New(problem.AuthNoToken, ""), 401, `Bearer realm="glidepath"`},
		"a bad token":   {problem.New(problem.AuthBadToken, "expired"), 401, `Bearer realm="glidepath", error="invalid_token"`},
		"not allowed":   {problem.New(problem.AuthzDenied, `not "allowed"`).WithHint("<ask>"), 403, ""},
		"no such app":   {problem.New(problem.NotFound, "no app"), 404, ""},
		"no answer":     {problem.New(problem.SourceFailed, "").WithCause(errors.New("secret detail")), 502, ""},
		"a zero error":  {&problem.Error{}, 502, ""},
		"bad names":     {problem.New(problem.BadRequest, "app is not a valid name"), 400, ""},
		"two namespace": {problem.New(problem.Conflict, ""), 409, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t, refusing(tc.refusal))
			resp := e.check(t, request("listLive", "GET", "/v1/apps/shop/live", nil))
			if resp.GetStatus().GetCode() == 0 || resp.GetOkResponse() != nil {
				t.Fatalf("allowed: %v", resp)
			}
			if got := int(resp.GetDeniedResponse().GetStatus().GetCode()); got != tc.status {
				t.Errorf("status %d, want %d", got, tc.status)
			}
			b, want := bodyOf(t, resp), tc.refusal.Body("")
			if b != want || b.Rule == "" || b.Message == "" {
				t.Errorf("body %+v, want %+v", b, want)
			}
			h := headersOf(resp)
			if h["content-type"] != "application/json" || h["cache-control"] != "no-store" || h["www-authenticate"] != tc.challenge || h["allow"] != "" {
				t.Errorf("headers %v", h)
			}
			if m := metadataOf(resp); len(m) != 3 || m["decision"] != "deny" || m["rule"] != b.Rule || m["error"] != b.Message {
				t.Errorf("metadata %v", m)
			}
			if strings.Contains(resp.String(), "secret detail") {
				t.Error("the cause shows")
			}
		})
	}
}

func TestARefusalRecordsWhatIsKnownOfTheCall(t *testing.T) {
	e := newEdge(t, refusing(problem.New(problem.AuthzDenied, ""), func(d *decision.Decision) {
		d.Caller, d.App, d.OnBehalfOf = caller(t, "tower"), "shop", "ana"
	}))
	m := metadataOf(e.check(t, request("listLive", "GET", "/v1/apps/shop/live", nil)))
	if len(m) != 6 || m["caller"] != "tower" || m["app"] != "shop" || m["onBehalfOf"] != "ana" {
		t.Errorf("metadata %v", m)
	}
}

func TestTheTraceOfARefusal(t *testing.T) {
	const ours, theirs = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	e := newEdge(t, refusing(problem.New(problem.AuthNoToken, "")))
	for name, tc := range map[string]struct{ grpc, header, want string }{
		"Envoy's":                   {ours, theirs, "4bf92f3577b34da6a3ce929d0e0e4736"},
		"the caller's, without one": {"", theirs, "0af7651916cd43dd8448eb211c80319c"},
		"the caller's, beside junk": {"junk", theirs, "0af7651916cd43dd8448eb211c80319c"},
		"none":                      {"", "", ""},
		"junk":                      {"", `00-"}-x-y`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.grpc != "" {
				ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("traceparent", tc.grpc))
			}
			req := request("listLive", "GET", "/v1/apps/shop/live", map[string]string{"traceparent": tc.header})
			resp, err := e.Check(ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			if got := bodyOf(t, resp).TraceID; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestARouteWithoutAnOperation(t *testing.T) {
	e := newEdge(t, decider(func(decision.Request) decision.Decision {
		t.Error("it was decided")
		return decision.Decision{}
	}))
	req := request("_unmatched", "GET", "/nope", map[string]string{"authorization": "Bearer x"})
	resp := e.check(t, req)
	if b := bodyOf(t, resp); b.Rule != "GP-EDGE-404" || resp.GetDeniedResponse().GetStatus().GetCode() != 404 || headersOf(resp)["allow"] != "" {
		t.Errorf("got %v", resp)
	}
	req.Attributes.ContextExtensions["allow"] = "GET, POST"
	resp = e.check(t, req)
	if b := bodyOf(t, resp); b.Rule != "GP-EDGE-405" || resp.GetDeniedResponse().GetStatus().GetCode() != 405 || headersOf(resp)["allow"] != "GET, POST" {
		t.Errorf("got %v", resp)
	}
}

func TestAnEdgeThatIsMisconfiguredRefusesEveryCall(t *testing.T) {
	good := func() *authv3.CheckRequest {
		return request("listLive", "GET", "/v1/apps/shop/live", map[string]string{":method": "GET", ":path": "/v1/apps/shop/live"})
	}
	for name, change := range map[string]func(*authv3.CheckRequest){
		"no attributes":         func(r *authv3.CheckRequest) { r.Attributes = nil },
		"no request":            func(r *authv3.CheckRequest) { r.Attributes.Request = nil },
		"no HTTP":               func(r *authv3.CheckRequest) { r.Attributes.Request.Http = nil },
		"no extensions":         func(r *authv3.CheckRequest) { r.Attributes.ContextExtensions = nil },
		"no op":                 func(r *authv3.CheckRequest) { delete(r.Attributes.ContextExtensions, "op") },
		"an empty op":           func(r *authv3.CheckRequest) { r.Attributes.ContextExtensions["op"] = "" },
		"an unknown op":         func(r *authv3.CheckRequest) { r.Attributes.ContextExtensions["op"] = "deleteEverything" },
		"an op in another case": func(r *authv3.CheckRequest) { r.Attributes.ContextExtensions["op"] = "LISTLIVE" },
		"another path beside":   func(r *authv3.CheckRequest) { r.Attributes.Request.Http.Headers[":path"] = "/v1/whoami" },
		"another method beside": func(r *authv3.CheckRequest) { r.Attributes.Request.Http.Headers[":method"] = "POST" },
		"a path in the list, as well": func(r *authv3.CheckRequest) {
			r.Attributes.Request.Http.HeaderMap = list(":path", "/v1/apps/shop/live")
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t, allowing(caller(t, "reader")))
			if resp := e.check(t, good()); resp.GetStatus().GetCode() != 0 {
				t.Fatalf("the sound request is refused: %v", resp)
			}
			req := good()
			change(req)
			resp := e.check(t, req)
			if resp.GetStatus().GetCode() == 0 || resp.GetOkResponse() != nil || bodyOf(t, resp).Rule != "GP-API-502" {
				t.Errorf("got %v", resp)
			}
		})
	}
	if e := newEdge(t, allowing(caller(t, "reader"))); e.check(t, nil).GetStatus().GetCode() == 0 {
		t.Error("no request at all is allowed")
	}
}

func list(kv ...string) *corev3.HeaderMap {
	m := &corev3.HeaderMap{}
	for i := 0; i < len(kv); i += 2 {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: kv[i], RawValue: []byte(kv[i+1])})
	}
	return m
}

func TestHeadersAreReadInBothFormsAndCountedInEach(t *testing.T) {
	for name, tc := range map[string]struct {
		joined map[string]string
		raw    *corev3.HeaderMap
		value  string
		times  int
	}{
		"neither":           {nil, nil, "", 0},
		"joined":            {map[string]string{"authorization": "a"}, nil, "a", 1},
		"joined, empty":     {map[string]string{"authorization": ""}, nil, "", 1},
		"raw":               {nil, list("authorization", "a"), "a", 1},
		"raw, among others": {nil, list("x", "y", "authorization", "a", "z", "a"), "a", 1},
		"raw, twice":        {nil, list("authorization", "a", "authorization", "b"), "b", 2},
		"both":              {map[string]string{"authorization": "a"}, list("authorization", "a"), "a", 2},
		"another case":      {map[string]string{"Authorization": "a"}, list("AUTHORIZATION", "a"), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t, decider(func(r decision.Request) decision.Decision {
				if v, n := r.Headers.Get("authorization"); v != tc.value || n != tc.times {
					t.Errorf("got %q, %d times", v, n)
				}
				return decision.Decision{}
			}))
			req := request("listLive", "GET", "/v1/apps/shop/live", nil)
			req.Attributes.Request.Http.Headers, req.Attributes.Request.Http.HeaderMap = tc.joined, tc.raw
			e.check(t, req)
		})
	}
}

func TestWhateverBreaksRefusesTheCall(t *testing.T) {
	for name, d := range map[string]extauthz.Decider{
		"a panic":                     decider(func(decision.Request) decision.Decision { panic("broken") }), //nolint:forbidigo // what a bug would do
		"neither allowed nor refused": decider(func(decision.Request) decision.Decision { return decision.Decision{} }),
		"allowed and refused": decider(func(r decision.Request) decision.Decision {
			d := allowing(caller(t, "reader")).Decide(t.Context(), r)
			d.Refusal = problem.New(problem.SourceFailed, "")
			return d
		}),
		"allowed, for nobody":              allowing(&authn.Caller{}),
		"allowed, without a caller":        allowing(nil),
		"allowed, an app but no namespace": &cluster{caller: caller(t, "reader"), namespace: &namespaces.Namespace{UID: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t, d)
			for op, path := range map[string]string{"listLive": "/v1/apps/shop/live", "cancelPipelineRun": "/v1/apps/shop/pipelineruns/a/cancel"} {
				o, _ := api.Lookup(op)
				resp := e.check(t, request(op, o.Method, path, nil))
				if resp.GetStatus().GetCode() == 0 || resp.GetOkResponse() != nil || bodyOf(t, resp).Rule != "GP-API-502" ||
					resp.GetDeniedResponse().GetStatus().GetCode() != http.StatusBadGateway {
					t.Errorf("%s: got %v", op, resp)
				}
			}
			if n := counter(t, e.reg, "glidepath_authz_panics_total"); (n > 0) != (name == "a panic") {
				t.Errorf("%v panics", n)
			}
		})
	}
}

func counter(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
