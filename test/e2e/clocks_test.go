package e2e_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hangar.io/glidepath/internal/identity"
)

// The clock of authz is five minutes off that of a backend, either way: nobody
// gets in, and a backend whose clock is right goes on serving.
func TestABackendWhoseClockIsFarFromAuthzsLetsNobodyIn(t *testing.T) {
	signer, err := identity.LoadSigner(filepath.Join(filepath.Dir(gw.IdentityKeysDir()), "authz", "identity.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		off  time.Duration
		want int
	}{
		"five minutes fast": {5 * time.Minute, http.StatusUnauthorized},
		"five minutes slow": {-5 * time.Minute, http.StatusUnauthorized},
		"two seconds fast":  {2 * time.Second, http.StatusOK},
		"two seconds slow":  {-2 * time.Second, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			issued, expires := identity.Times(time.Now().Add(tt.off), identity.MaxLifetime)
			token, err := signer.Sign(identity.Claims{
				RegisteredClaims: jwt.RegisteredClaims{
					Subject: username(t, "reader"), Audience: jwt.ClaimStrings{"livehub"}, IssuedAt: issued, ExpiresAt: expires, ID: "e2e-clock-" + name,
				},
				Op: "listLiveRuns", Tier: "T0",
			})
			if err != nil {
				t.Fatal(err)
			}
			_, a, err := try(t.Context(), http.MethodGet, gw.Livehubs[0].URL+"/v1/live", header(identity.Header, token))
			if err != nil {
				t.Fatal(err)
			}
			if a.status != tt.want {
				t.Errorf("got %d, want %d: %.200s", a.status, tt.want, a.body)
			}
			if tt.want == http.StatusUnauthorized {
				refused(t, a, 401, "GP-EDGE-401")
			}
		})
	}
	ok(t, get(t, "/v1/live", as("reader")))
}

// The clock of whoever issued a token is five minutes off the cluster's: the
// cluster judges by its own, and so does the gateway.
//
// rule: R389
func TestATokenOfAnIssuerWhoseClockIsOffIsTheClustersToJudge(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		from, until time.Time
		good        bool
	}{
		"five minutes fast, so not good yet":       {now.Add(5 * time.Minute), now.Add(time.Hour), false},
		"five minutes slow, so good no longer":     {now.Add(-time.Hour), now.Add(-5 * time.Minute), false},
		"five minutes slow, and good for a moment": {now.Add(-5 * time.Minute), now.Add(5 * time.Minute), true},
	} {
		t.Run(name, func(t *testing.T) {
			token := timed(t, tt.from, tt.until)
			for _, c := range []struct{ method, op string }{{"GET", "whoami"}, {"GET", "listLive"}, {"POST", "cancelPipelineRun"}} {
				a := call(t, c.method, gw.URL+calls[c.op], bearer(token))
				switch {
				case !tt.good:
					refused(t, a, 401, "GP-AUTH-002")
				case c.method == http.MethodPost:
					refused(t, a, 403, "GP-AUTHZ-001") // it is the reader's
				default:
					ok(t, a)
				}
			}
		})
	}
}
