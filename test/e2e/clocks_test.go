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

// The clock of the issuer of people's tokens is off that of authz: by less than
// the 30 s of leeway nobody notices, by five minutes nobody gets in with a token
// that is not good yet or no longer.
//
// rule: R061
func TestAPersonsTokenOfAnIssuerWhoseClockIsOff(t *testing.T) {
	const login = "e2e-clock"
	i := startIssuer(t)
	g := startPeople(t, i, login)
	eventually(t, "the issuer's keys are known", func() bool {
		return call(t, http.MethodGet, g.URL+calls["whoami"], bearer(i.token(t, login, nil))).status == http.StatusOK
	})
	for name, tt := range map[string]struct {
		claims map[string]time.Duration // from now
		good   bool
	}{
		"issued in five minutes":            {map[string]time.Duration{"iat": 5 * time.Minute}, false},
		"good in five minutes":              {map[string]time.Duration{"nbf": 5 * time.Minute}, false},
		"issued and good in five minutes":   {map[string]time.Duration{"iat": 5 * time.Minute, "nbf": 5 * time.Minute}, false},
		"expired five minutes ago":          {map[string]time.Duration{"iat": -time.Hour, "exp": -5 * time.Minute}, false},
		"issued in twenty seconds":          {map[string]time.Duration{"iat": 20 * time.Second}, true},
		"good in twenty seconds":            {map[string]time.Duration{"nbf": 20 * time.Second}, true},
		"issued and good in twenty seconds": {map[string]time.Duration{"iat": 20 * time.Second, "nbf": 20 * time.Second}, true},
		"expired twenty seconds ago":        {map[string]time.Duration{"iat": -time.Hour, "exp": -20 * time.Second}, true},
		"issued and good five minutes ago":  {map[string]time.Duration{"iat": -5 * time.Minute, "nbf": -5 * time.Minute}, true},
		"expiring in twenty seconds":        {map[string]time.Duration{"iat": -time.Hour, "exp": 20 * time.Second}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct{ method, op string }{{"GET", "whoami"}, {"GET", "listLive"}, {"POST", "cancelPipelineRun"}} {
				claims, now := jwt.MapClaims{}, time.Now() // anew for each call: those within the leeway are not good for long
				for claim, off := range tt.claims {
					claims[claim] = now.Add(off).Unix()
				}
				a := call(t, c.method, g.URL+calls[c.op], bearer(i.token(t, login, claims)))
				switch {
				case !tt.good:
					refused(t, a, 401, "GP-AUTH-002")
				case c.op == "whoami":
					ok(t, a)
				default:
					refused(t, a, 403, "GP-AUTHZ-001") // the cluster gives this login nothing
				}
			}
		})
	}
}
