package forgery_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hangar.io/glidepath/authz/apifake"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/forgery"
	"hangar.io/glidepath/authz/jwks"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/problem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const issuer = "https://kubernetes.default.svc"

// parts are reviews behind a Filter, of an API server without a network.
type parts struct {
	api    *apifake.Server
	tokens *review.Tokens
	reg    *prometheus.Registry
	key    apifake.SigningKey
}

// start starts them inside a bubble, with the keys read if they are published.
func start(t *testing.T, published bool) *parts {
	t.Helper()
	p := &parts{api: &apifake.Server{}, reg: prometheus.NewRegistry(), key: apifake.NewSigningKey(t, "one")}
	if published {
		p.api.Publish(issuer, p.key)
	}
	client, err := review.NewClient(p.api.Config())
	if err != nil {
		t.Fatal(err)
	}
	slots, err := review.NewSlots(review.Limits{UnknownRead: 1, UnknownWrite: 1, Read: 1, Write: 1, Waiting: 4})
	if err != nil {
		t.Fatal(err)
	}
	if p.tokens, err = review.NewTokens(client, slots, review.NewMetrics(p.reg, slots), nil); err != nil {
		t.Fatal(err)
	}
	f, err := forgery.New(forgery.Config{Cluster: p.api.Config(), Keys: jwks.NewMetrics(p.reg), Metrics: p.reg})
	if err != nil {
		t.Fatal(err)
	}
	p.tokens.ScreenBy(f)
	go f.Run(t.Context())
	t.Cleanup(func() {
		p.tokens.Close()
		client.Close()
		f.Close()
	})
	synctest.Wait()
	return p
}

func claimsOf(subject string) jwt.MapClaims {
	return jwt.MapClaims{"iss": issuer, "sub": subject, "exp": time.Now().Add(time.Hour).Unix()}
}

type bearer string

func (b bearer) Get(name string) (string, int) {
	if name != token.DirectHeader {
		return "", 0
	}
	return "Bearer " + string(b), 1
}

// ask gives the user name, or the rule.
func (p *parts) ask(t *testing.T, secret string, purpose authn.Purpose) string {
	t.Helper()
	tok, err := token.FromHeaders(bearer(secret))
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.tokens.Authenticate(t.Context(), tok, purpose)
	if err != nil {
		return problem.From(err).Rule.ID
	}
	return c.Username
}

func (p *parts) found(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := p.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "glidepath_authz_signatures_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if v := m.GetCounter().GetValue(); v > 0 {
				out[m.GetLabel()[0].GetValue()] = v
			}
		}
	}
	return out
}

// parted puts a token together of other parts.
func parted(head, claims, signature string) string {
	return encode(head) + "." + claims + "." + signature
}

func encode(part string) string { return base64.RawURLEncoding.EncodeToString([]byte(part)) }

var purposes = map[string]authn.Purpose{"read": authn.ForRead, "write": authn.ForWrite}

func TestWhatIsForgedCostsNoReviewAndWhatIsNotIsReviewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, true)
		good := p.key.Sign(t, claimsOf("u"))
		part := strings.Split(good, ".")
		other := strings.Split(p.key.Sign(t, claimsOf("v")), ".")
		thief := apifake.NewSigningKey(t, "one")
		old := func(d time.Duration) jwt.MapClaims {
			c := claimsOf("u")
			c["exp"] = time.Now().Add(-d).Unix()
			return c
		}
		elsewhere := claimsOf("u")
		elsewhere["iss"] = "https://elsewhere.example"
		for name, tc := range map[string]struct {
			token    string
			reviewed bool
		}{
			"another's signature under the key's name": {thief.Sign(t, claimsOf("u")), false},
			"a signature of other claims":              {part[0] + "." + other[1] + "." + part[2], false},
			"no signature":                             {part[0] + "." + part[1] + ".", false},
			"the algorithm none":                       {parted(`{"alg":"none","kid":"one"}`, part[1], ""), false},
			"a secret of both sides":                   {parted(`{"alg":"HS256","kid":"one"}`, part[1], part[2]), false},
			"another algorithm of the key":             {parted(`{"alg":"RS256","kid":"one"}`, part[1], part[2]), false},
			"no key":                                   {parted(`{"alg":"ES256"}`, part[1], part[2]), false},
			"a header that is none":                    {parted(`{`, part[1], part[2]), false},
			"an issuer that stands twice":              {parted(`{"alg":"ES256","kid":"one"}`, encode(`{"iss":"https://elsewhere.example","iss":"`+issuer+`"}`), part[2]), false},
			"another claim that stands twice":          {parted(`{"alg":"ES256","kid":"one"}`, encode(`{"iss":"`+issuer+`","a":1,"a":2}`), part[2]), false},
			"an expiry that is no number":              {parted(`{"alg":"ES256","kid":"one"}`, encode(`{"iss":"`+issuer+`","exp":"x"}`), part[2]), false},
			"claims that are cut off":                  {parted(`{"alg":"ES256","kid":"one"}`, encode(`{"iss":"`+issuer+`","exp":`), part[2]), false},
			"one that expired long ago":                {p.key.Sign(t, old(11*time.Minute)), false},

			"one that the cluster signed for an account that is gone": {good, true},
			"one that expired by this clock":                          {p.key.Sign(t, old(5*time.Minute)), true},
			"another issuer":                                          {thief.Sign(t, elsewhere), true},
			"an opaque token":                                         {"opaque", true},
			"claims that are none":                                    {part[0] + ".e." + part[2], true},
			"an unpublished key":                                      {apifake.NewSigningKey(t, "two").Sign(t, claimsOf("u")), true},
		} {
			for purpose, want := range purposes {
				p.api.Forget()
				if got := p.ask(t, tc.token, want); got != "GP-AUTH-002" {
					t.Errorf("%s, for a %s: %s", name, purpose, got)
				}
				if n := len(p.api.Tried()); (n > 0) != tc.reviewed {
					t.Errorf("%s, for a %s: %d reviews", name, purpose, n)
				}
			}
		}
		// What it finds good is nothing without the cluster's word.
		p.api.AcceptUser(good, "u")
		time.Sleep(time.Minute)
		if got := p.ask(t, good, authn.ForRead); got != "u" {
			t.Errorf("a good token: %s", got)
		}
	})
}

// A thousand forged tokens a second, each another one, while the API server is
// slow: reviews of first-time callers with real tokens wait for nobody.
func TestAFloodOfForgedTokensLeavesFirstTimeCallersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, true)
		p.api.Fail(func(w http.ResponseWriter, r *http.Request) bool {
			time.Sleep(100 * time.Millisecond)
			p.api.Decide(w, r)
			return true
		})
		thief := apifake.NewSigningKey(t, "one")
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				c := claimsOf("u")
				c["jti"] = i
				if got := p.ask(t, thief.Sign(t, c), authn.Purpose(i%2)); got != "GP-AUTH-002" {
					t.Errorf("%d: %s", i, got)
				}
			})
		}
		// And opaque ones, which have to be reviewed and are more than can be.
		const opaque = 50
		for i := range opaque {
			all.Go(func() { p.ask(t, fmt.Sprint("opaque", i), authn.ForWrite) })
		}
		time.Sleep(50 * time.Millisecond)
		for _, purpose := range purposes {
			good := p.key.Sign(t, claimsOf(fmt.Sprint("first", purpose)))
			p.api.AcceptUser(good, "u")
			began := time.Now()
			if got := p.ask(t, good, purpose); got != "u" || time.Since(began) > 100*time.Millisecond {
				t.Errorf("a first-time caller: %s after %s", got, time.Since(began))
			}
		}
		all.Wait()
		if n := len(p.api.Tried()); p.found(t)["forged"] != 1000 || n > 2+opaque {
			t.Errorf("found %v, %d reviews", p.found(t), n)
		}
	})
}

func TestMadeUpKeysGetFewReviewsAndAreNeverCalledForged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, true)
		rules := map[string]int{}
		for i := range 1000 {
			rules[p.ask(t, apifake.NewSigningKey(t, fmt.Sprint("made-up", i)).Sign(t, claimsOf("u")), authn.ForWrite)]++
			time.Sleep(time.Millisecond)
		}
		// The wait for the keys takes no time here.
		if n := len(p.api.Tried()); n < 10 || n > 12 || rules["GP-AUTH-002"] != n || rules["GP-API-502"] != 1000-n {
			t.Errorf("%d reviews, answers %v", n, rules)
		}
	})
}

// A key that is not published and still good is that of another cluster whose
// issuer has the same name, say.
func TestAKeyThatTheClusterKnowsAndDoesNotPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, true)
		hidden := apifake.NewSigningKey(t, "hidden")
		first := hidden.Sign(t, claimsOf("first"))
		p.api.AcceptUser(first, "federated")
		if got := p.ask(t, first, authn.ForRead); got != "federated" {
			t.Fatal(got)
		}
		for i := range 20 { // the few reviews are used up
			p.ask(t, apifake.NewSigningKey(t, fmt.Sprint("made-up", i)).Sign(t, claimsOf("u")), authn.ForRead)
		}
		for i := range 20 {
			next := hidden.Sign(t, claimsOf(fmt.Sprint("next", i)))
			p.api.AcceptUser(next, "federated")
			if got := p.ask(t, next, authn.ForWrite); got != "federated" {
				t.Fatalf("%d: %s", i, got)
			}
		}
		// Once it is published it is a key like others.
		p.api.Publish(issuer, p.key, hidden)
		time.Sleep(jwks.Refresh + time.Second)
		p.api.Forget()
		if got := p.ask(t, apifake.NewSigningKey(t, "hidden").Sign(t, claimsOf("u")), authn.ForWrite); got != "GP-AUTH-002" || len(p.api.Tried()) > 0 {
			t.Errorf("forged under its name: %s, reviewed %v", got, len(p.api.Tried()))
		}
	})
}

func TestANewKeyOfTheClusterIsKnownAtItsFirstToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, true)
		time.Sleep(jwks.Spacing)
		next := apifake.NewSigningKey(t, "next")
		p.api.Publish(issuer, p.key, next)
		token := next.Sign(t, claimsOf("u"))
		p.api.AcceptUser(token, "u")
		if got := p.ask(t, token, authn.ForWrite); got != "u" {
			t.Fatal(got)
		}
		if want := map[string]float64{"genuine": 1}; !maps.Equal(p.found(t), want) {
			t.Errorf("found %v", p.found(t))
		}
	})
}

func TestWithoutKeysEveryTokenIsReviewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, false)
		thief := apifake.NewSigningKey(t, "one")
		reviewed := func() bool {
			p.api.Forget()
			began := time.Now()
			if got := p.ask(t, thief.Sign(t, claimsOf("u")), authn.ForWrite); got != "GP-AUTH-002" || time.Since(began) > 0 {
				t.Errorf("%s after %s", got, time.Since(began))
			}
			return len(p.api.Tried()) == 1
		}
		if !reviewed() {
			t.Error("nothing is published: not reviewed")
		}
		p.api.Publish(issuer, p.key)
		time.Sleep(2 * time.Second)
		if reviewed() {
			t.Error("published: reviewed")
		}
		// What was read stays while it cannot be read again.
		p.api.Fail(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != apifake.Keys && r.URL.Path != apifake.Configuration {
				return false
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		})
		time.Sleep(2 * jwks.Refresh)
		if reviewed() {
			t.Error("away: reviewed")
		}
	})
}
