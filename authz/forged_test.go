package authz_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	rbacv1 "k8s.io/api/rbac/v1"

	"hangar.io/glidepath/internal/devenv/devtest"
)

// forged gives a token like a good one, with the claims that are wanted and the
// name of the cluster's key, signed by somebody else.
func forged(t *testing.T, like string, thief *ecdsa.PrivateKey, id string) string {
	t.Helper()
	var claims jwt.MapClaims
	parsed, _, err := jwt.NewParser().ParseUnverified(like, &claims)
	must(t, err)
	claims["jti"] = id
	again := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	again.Header["kid"] = parsed.Header["kid"]
	signed, err := again.SignedString(thief)
	must(t, err)
	return signed
}

// broken gives a forged token claims that a strict reader refuses.
func broken(t *testing.T, tok string, i int) string {
	t.Helper()
	part := strings.Split(tok, ".")
	claims, err := base64.RawURLEncoding.DecodeString(part[1])
	must(t, err)
	open := strings.TrimSuffix(string(claims), "}")
	ends := []string{`,"jti":"twice"}`, `,"iss":"https://elsewhere.example"}`, `,"nbf":`, `,"exp":"x"}`}
	part[1] = base64.RawURLEncoding.EncodeToString([]byte(open + ends[i/5%len(ends)]))
	return strings.Join(part, ".")
}

func thief(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

// metric gives the value of one line of the metrics, 0 for none.
func (p *process) metric(line string) float64 {
	p.t.Helper()
	_, all := p.http(p.web, "http://"+p.config.MetricsListen+"/metrics", nil)
	for l := range strings.Lines(all) {
		if value, ok := strings.CutPrefix(l, line+" "); ok {
			var v float64
			if _, err := fmt.Sscan(value, &v); err != nil {
				p.t.Fatal(err)
			}
			return v
		}
	}
	return 0
}

func (p *process) knowsTheClustersKeys() {
	p.t.Helper()
	p.eventually("the cluster's keys are known", func() bool { return p.metric(`glidepath_authz_issuer_keys{issuer="cluster"}`) > 0 })
}

func TestAFloodOfForgedTokensReachesNoAPIServer(t *testing.T) {
	namespace(t, "app-flooded-cicd")
	clusterRole(t, "cancel-runs", rbacv1.PolicyRule{APIGroups: []string{"glidepath.hangar.io"}, Resources: []string{"runs"}, Verbs: []string{"list", "cancel"}})
	operator, late := account(t, "operator"), account(t, "late")
	bindEverywhere(t, "cancel-runs", "operator")
	bindEverywhere(t, "cancel-runs", "late")
	p := connect(t)
	p.knowsTheClustersKeys()
	const cancel, list = "/v1/apps/flooded/pipelineruns/a/cancel", "/v1/apps/flooded/live"
	for _, tok := range []string{operator, account(t, "late")} { // another token than late's
		p.eventually("the right is known", func() bool { return p.check("cancelPipelineRun", cancel, tok).allowed() })
		p.eventually("the right is known", func() bool { return p.check("listLive", list, tok).allowed() })
	}
	key := thief(t)
	mark, err := cluster.AuditMark(t.Context())
	must(t, err)
	var flood sync.WaitGroup
	var sent, over atomic.Int64
	for n := range 8 {
		flood.Go(func() {
			for i := range 250 {
				op, path := "listLive", list
				if i%2 == 0 {
					op, path = "cancelPipelineRun", cancel
				}
				made := forged(t, operator, key, fmt.Sprint(n, "-", i))
				if i%5 == 0 {
					made = broken(t, made, i)
				}
				if got := p.check(op, path, made).rule(); got != "GP-AUTH-002" {
					t.Errorf("a forged token: %s", got)
				}
				sent.Add(1)
			}
		})
	}
	go func() { flood.Wait(); over.Store(1) }()
	writes := 0
	for first := true; first || over.Load() == 0; first = false {
		for op, path := range map[string]string{"listLive": list, "cancelPipelineRun": cancel} {
			if a := p.check(op, path, operator); !a.allowed() {
				t.Errorf("%s in the flood: %s", op, a.rule())
			}
		}
		writes++
	}
	// One that was never here before comes in too.
	if a := p.check("cancelPipelineRun", cancel, late); !a.allowed() {
		t.Errorf("a first-time writer: %s", a.rule())
	}
	flood.Wait()
	events, err := cluster.Audit(t.Context(), mark)
	must(t, err)
	reviews := 0
	for _, e := range events {
		if e.Resource == "tokenreviews" && e.User == "system:serviceaccount:"+callers+":"+authzAccount {
			reviews++
		}
	}
	// A read's review is remembered for ten seconds; a minute has six.
	if forged := p.metric(`glidepath_authz_signatures_total{result="forged"}`); reviews > writes+1+6 || forged != float64(sent.Load()) {
		t.Errorf("%d TokenReviews for %d writes; %v of %d tokens were found forged", reviews, writes, forged, sent.Load())
	}
}

// A key of the cluster that authz does not know yet is none to refuse by, and
// authz that cannot read the keys refuses nobody.
func TestTheClustersKeysAreNotToBeHad(t *testing.T) {
	s, kubeconfig := fakeCluster(t)
	s.AcceptUser("eyJhbGciOiJFUzI1NiIsImtpZCI6Im9uZSJ9.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMifQ.c2ln", "reader")
	p := run(t, configuration(t, kubeconfig))
	if got := p.check("whoami", "/v1/whoami", "eyJhbGciOiJFUzI1NiIsImtpZCI6Im9uZSJ9.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMifQ.c2ln").rule(); got != "" {
		t.Errorf("refused with %s", got)
	}
	if got := p.metric(`glidepath_authz_issuer_keys{issuer="cluster"}`); got != 0 {
		t.Errorf("%v keys", got)
	}
}

// An identity of another issuer that the API server trusts is the API server's
// to judge.
//
// rule: R071
func TestATokenOfAnotherIssuerThatTheAPIServerTrusts(t *testing.T) {
	key := thief(t)
	var issuer *httptest.Server
	issuer = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any = map[string]any{
			"issuer": issuer.URL, "jwks_uri": issuer.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"},
			"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
		}
		if r.URL.Path == "/keys" {
			body = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "federation", Algorithm: "ES256", Use: "sig"}}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(issuer.Close)
	ca := filepath.Join(t.TempDir(), "issuer.crt")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw}), 0o600))
	api := devtest.APIServer(t, "--oidc-issuer-url="+issuer.URL, "--oidc-client-id=glidepath", "--oidc-ca-file="+ca,
		"--oidc-username-claim=sub", "--oidc-username-prefix=hangar:", "--oidc-signing-algs=ES256")
	sign := func(k *ecdsa.PrivateKey, subject string) string {
		tok := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
			"iss": issuer.URL, "aud": "glidepath", "sub": subject, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		})
		tok.Header["kid"] = "federation"
		signed, err := tok.SignedString(k)
		must(t, err)
		return signed
	}
	p := run(t, configuration(t, api.Kubeconfig))
	p.knowsTheClustersKeys()
	p.eventually("the API server knows the issuer's keys", func() bool { return p.check("whoami", "/v1/whoami", sign(key, "ground:deployer")).allowed() })
	if got := p.check("whoami", "/v1/whoami", sign(key, "ground:other")).claims().Subject; got != "hangar:ground:other" {
		t.Errorf("it is %q", got)
	}
	if got := p.check("whoami", "/v1/whoami", sign(thief(t), "ground:deployer")).rule(); got != "GP-AUTH-002" {
		t.Errorf("one that its issuer did not sign: %q", got)
	}
}
