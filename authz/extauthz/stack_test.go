package extauthz_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/apifake"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/internal/kube"
	"hangar.io/glidepath/internal/telemetry"
)

// shop is a cluster with one app and nothing else.
type shop struct{}

func (shop) Resolve(app string) (namespaces.Resolution, error) {
	r := namespaces.Resolution{Namespace: namespaces.Namespace{Name: "app-" + app + "-cicd"}}
	if app == "shop" {
		r.Namespace.UID = "uid-of-shop"
	}
	return r, nil
}

// longToken gives a token of the size that a cluster issues.
func longToken(name string) string {
	claims := fmt.Sprintf(`{"iss":"https://kubernetes.default.svc","sub":%q,"exp":%d,"pad":%q}`,
		name, time.Now().Add(time.Hour).Unix(), strings.Repeat("x", 700))
	return "eyJhbGciOiJFUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + strings.Repeat("s", 86)
}

// newStack gives an edge over a whole decision: everything but the network.
// The caller "reader" may list runs of the app shop; the delegate "tower" may
// do everything.
func newStack(t testing.TB) (*edge, *apifake.Server) {
	t.Helper()
	return newTracedStack(t, new(telemetry.Tracing))
}

func newTracedStack(t testing.TB, tracing *telemetry.Tracing) (*edge, *apifake.Server) {
	t.Helper()
	s := &apifake.Server{}
	s.AcceptUser("reader-token", "reader")
	s.AcceptUser("tower-token", "tower")
	s.Grant("reader", "list", "runs", "app-shop-cicd")
	for _, op := range api.Operations() {
		resource := op.Resource
		if op.Subresource != "" {
			resource += "/" + op.Subresource
		}
		s.Grant("tower", op.Verb, resource, "")
	}
	cfg := s.Config()
	cfg.Wrap(tracing.WrapTransport(kube.SpanName))
	client, err := review.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	slots, err := review.NewSlots(review.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	metrics := review.NewMetrics(prometheus.NewRegistry(), slots)
	tokens, err := review.NewTokens(client, slots, metrics, nil)
	if err != nil {
		t.Fatal(err)
	}
	access, err := review.NewAccess(client, slots, metrics)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tokens.Close()
		access.Close()
	})
	return newTracedEdge(t, decision.New(decision.Config{
		Authenticator: authn.ByIssuer{Default: tokens}, Access: access, Namespaces: shop{}, Delegates: []string{"tower"},
	}), tracing), s
}

// FuzzCheck looks for a call that is allowed though it must not be: without a
// good token, without the right, or as another operation than its route's.
func FuzzCheck(f *testing.F) {
	e, _ := newStack(f)
	ops := api.Operations()
	for i, op := range ops {
		path := strings.NewReplacer("{app}", "shop", "{result}", "4f0c7d1e-2b6a-4c39-9d5e-8a1f3b2c7e90", "{taskRun}", "t", "{id}", "i",
			"{container}", "c", "{chainId}", "c", "{name}", "n", "{env}", "e").Replace(op.Path)
		f.Add(i, op.Method, path, "Bearer reader-token", "", "", false, true)
		f.Add(i, op.Method, path, "", "bearer tower-token", "ana", true, true)
		f.Add(i, op.Method, path+"?app=shop&app=x", "Bearer x,Bearer reader-token", "Bearer tower-token", "a,b", true, false)
	}
	f.Fuzz(func(t *testing.T, n int, method, path, direct, proxy, person string, hasProxy, hasPerson bool) {
		op := api.Operation{ID: "unknown"}
		if n >= 0 && n < len(ops) {
			op = ops[n]
		}
		h := map[string]string{"authorization": direct}
		used := direct
		if hasProxy {
			h["x-glidepath-authorization"], used = proxy, proxy
		}
		if hasPerson {
			h["x-glidepath-on-behalf-of"] = person
		}
		resp := e.check(t, request(op.ID, method, path, h))
		if (resp.GetStatus().GetCode() == 0) != (resp.GetOkResponse() != nil) || (resp.GetOkResponse() == nil) != (resp.GetDeniedResponse() != nil) {
			t.Fatalf("neither allowed nor refused: %v", resp)
		}
		for k, v := range metadataOf(resp) {
			if v == "" {
				t.Errorf("the metadata has an empty %s", k)
			}
		}
		if resp.GetOkResponse() == nil {
			if b := bodyOf(t, resp); !strings.HasPrefix(b.Rule, "GP-") || b.Message == "" {
				t.Errorf("refused with %+v", b)
			}
			return
		}
		c := e.claims(t, resp, op.Backend)
		scheme, tok, _ := strings.Cut(strings.Trim(used, " "), " ")
		if !strings.EqualFold(scheme, "Bearer") || strings.Trim(tok, " ") != c.Subject+"-token" || !slices.Contains([]string{"reader", "tower"}, c.Subject) {
			t.Errorf("%q was allowed with %q", c.Subject, used)
		}
		if method != op.Method || c.Op != op.ID || c.OnBehalfOf != h["x-glidepath-on-behalf-of"] {
			t.Errorf("%s %s was allowed as %+v", method, path, c)
		}
		if c.Subject == "reader" && (c.App != "shop" || op.Verb != "list" || op.Resource != "runs") && op.Scope != api.ScopeSelf {
			t.Errorf("the reader was allowed %s %s", op.ID, path)
		}
		if c.OnBehalfOf != "" && c.Subject != "tower" {
			t.Errorf("%s acts on behalf of %q", c.Subject, c.OnBehalfOf)
		}
		if c.Subject == "tower" && op.Tier != "T0" && c.OnBehalfOf == "" {
			t.Errorf("a delegate's write for nobody: %s", path)
		}
	})
}

// wire is a message as it is sent.
func wire(t testing.TB, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// BenchmarkCheck is what a decision costs once it is cached: the target is 25
// microseconds over a check that does nothing.
func BenchmarkCheck(b *testing.B) {
	for name, call := range map[string]struct{ op, path string }{
		"cached read of an app":   {"listLive", "/v1/apps/shop/live"},
		"cached read of a fleet":  {"listLiveRuns", "/v1/live?limit=50&app=shop"},
		"cached whoami":           {"whoami", "/v1/whoami"},
		"cached refusal":          {"listTests", "/v1/apps/shop/tests"},
		"refusal without a token": {"", ""},
	} {
		b.Run(name, func(b *testing.B) {
			e, s := newStack(b)
			tok := longToken("reader")
			s.AcceptUser(tok, "reader", "system:serviceaccounts", "system:serviceaccounts:team")
			h := map[string]string{"authorization": "Bearer " + tok, "x-request-id": "28616f65-5bd0-9bee-ac40-b30918537aae"}
			if call.op == "" {
				call.op, call.path, h = "listLive", "/v1/apps/shop/live", map[string]string{"authorization": ""}
			}
			req := wire(b, request(call.op, "GET", call.path, h))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.CheckRaw(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
