package review_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"hangar.io/glidepath/authz/apifake"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/problem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parts are reviews of an API server without a network.
type parts struct {
	api    *apifake.Server
	tokens *review.Tokens
	access *review.Access
	reg    *prometheus.Registry
}

type option func(*review.Limits, *[]string)

func audiences(a ...string) option {
	return func(_ *review.Limits, to *[]string) { *to = a }
}

func limits(l review.Limits) option {
	return func(to *review.Limits, _ *[]string) { *to = l }
}

func start(t testing.TB, options ...option) *parts {
	t.Helper()
	l, a := review.DefaultLimits(), []string(nil)
	for _, o := range options {
		o(&l, &a)
	}
	p := &parts{api: &apifake.Server{}, reg: prometheus.NewRegistry()}
	client, err := review.NewClient(p.api.Config())
	if err != nil {
		t.Fatal(err)
	}
	slots, err := review.NewSlots(l)
	if err != nil {
		t.Fatal(err)
	}
	m := review.NewMetrics(p.reg, slots)
	if p.tokens, err = review.NewTokens(client, slots, m, a); err != nil {
		t.Fatal(err)
	}
	if p.access, err = review.NewAccess(client, slots, m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.tokens.Close()
		p.access.Close()
		client.Close()
	})
	return p
}

// authenticate asks for a token and gives the user name, or the rule.
func (p *parts) authenticate(ctx context.Context, secret string, purpose authn.Purpose) string {
	tok, err := token.FromHeaders(bearer(secret))
	if err != nil {
		return err.Error()
	}
	c, err := p.tokens.Authenticate(ctx, tok, purpose)
	if err != nil {
		return problem.From(err).Rule.ID
	}
	return c.Username
}

func (p *parts) caller(t testing.TB, secret string) *authn.Caller {
	t.Helper()
	tok, err := token.FromHeaders(bearer(secret))
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.tokens.Authenticate(t.Context(), tok, authn.ForRead)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *parts) count(t testing.TB, metric string, labels prometheus.Labels) float64 {
	t.Helper()
	families, err := p.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			matches := f.GetName() == metric
			for _, l := range m.GetLabel() {
				if want, ok := labels[l.GetName()]; ok && want != l.GetValue() {
					matches = false
				}
			}
			if matches {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return 0
}

type bearer string

func (b bearer) Get(name string) (string, int) {
	if name != token.DirectHeader {
		return "", 0
	}
	return "Bearer " + string(b), 1
}

var list = review.Right{Verb: "list", Group: "glidepath.hangar.io", Resource: "runs", Namespace: "app-shop-cicd"}

// slow has the API server take d for what matches, or until nobody waits.
func (p *parts) slow(d time.Duration, match func(*http.Request) bool) {
	p.api.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		if match == nil || match(r) {
			select {
			case <-time.After(d):
			case <-r.Context().Done():
			}
		}
		return false
	})
}

func TestTheReviewOfATokenAndOfARight(t *testing.T) {
	p := start(t)
	p.api.AcceptUser("good", "system:serviceaccount:ci:runner", "system:serviceaccounts")
	p.api.Grant("system:serviceaccount:ci:runner", "list", "runs", "app-shop-cicd")
	c := p.caller(t, "good")
	if c.Username != "system:serviceaccount:ci:runner" || c.Kind != authn.ServiceAccount || !slices.Equal(c.Audiences, []string{apifake.Audience}) {
		t.Errorf("got %+v", c)
	}
	for namespace, want := range map[string]bool{"app-shop-cicd": true, "app-other-cicd": false, "": false} {
		right := list
		right.Namespace = namespace
		allowed, err := p.access.Allowed(t.Context(), c, right, authn.ForRead)
		if err != nil || allowed != want {
			t.Errorf("in %q: %v %v", namespace, allowed, err)
		}
	}
	asked := p.api.Asked()[0]
	if asked.User != c.Username || asked.UID != c.UID || !slices.Equal(asked.Groups, []string{"system:serviceaccounts", "system:authenticated"}) ||
		!slices.Equal(asked.Extra["authentication.kubernetes.io/credential-id"], []string{"JTI=good"}) {
		t.Errorf("the review asked about %+v", asked)
	}
}

func TestAudiences(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted, token []string
		want          string
	}{
		"none wanted, the API server's own token":  {nil, nil, "u"},
		"none wanted, a token for something else":  {nil, []string{"clearance"}, "GP-AUTH-002"},
		"one wanted, a token for it":               {[]string{"glidepath"}, []string{"glidepath"}, "u"},
		"one wanted, a token for the API server":   {[]string{"glidepath"}, nil, "GP-AUTH-002"},
		"one wanted, a token for several":          {[]string{"glidepath"}, []string{apifake.Audience, "glidepath"}, "u"},
		"two wanted, a token for the second":       {[]string{"a", "glidepath"}, []string{"glidepath"}, "u"},
		"one wanted, a token for one starting so":  {[]string{"glidepath"}, []string{"glidepath2"}, "GP-AUTH-002"},
		"the API server's own wanted by its name":  {[]string{apifake.Audience}, nil, "u"},
		"two wanted, a token for neither of them ": {[]string{"a", "b"}, []string{"c"}, "GP-AUTH-002"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, audiences(tc.wanted...))
			a := apifake.Token{Audiences: tc.token}
			a.User.Username = "u"
			p.api.Accept("good", a)
			if got := p.authenticate(t.Context(), "good", authn.ForRead); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// rule: R402
func TestAnAnswerThatIsNoneAllowsNobodyAndIsNotRemembered(t *testing.T) {
	const review = `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"u"}}}`
	const access = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true}}`
	body := func(code int, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(text))
		}
	}
	for name, answer := range map[string]func(http.ResponseWriter){
		"401 on our own credential":       body(401, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":401}`),
		"403 for us":                      body(403, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403}`),
		"404":                             body(404, ""),
		"409":                             body(409, ""),
		"429 with a long wait":            func(w http.ResponseWriter) { w.Header().Set("Retry-After", "30"); w.WriteHeader(429) },
		"500":                             body(500, "boom"),
		"503":                             body(503, ""),
		"a good review with a bad status": body(500, review),
		"202":                             body(202, review),
		"204":                             body(204, ""),
		"nothing":                         body(201, ""),
		"garbage":                         body(201, "\x00\xff<html>"),
		"JSON of another shape":           body(201, `[]`),
		"null":                            body(201, `null`),
		"a Status with a good status":     body(201, `{"kind":"Status","apiVersion":"v1","status":"Success"}`),
		"another kind":                    body(201, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","status":{"authenticated":true,"user":{"username":"u"}}}`),
		"another version":                 body(201, `{"apiVersion":"authentication.k8s.io/v1beta1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"u"}}}`),
		"no kind":                         body(201, `{"status":{"authenticated":true,"allowed":true,"user":{"username":"u"}}}`),
		"the kind in another case":        body(201, strings.NewReplacer("kind", "Kind").Replace(review)),
		"a review cut short":              body(201, review[:len(review)-2]),
		"two reviews":                     body(201, review+review),
		"a status said twice":             body(201, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":false},"status":{"authenticated":true,"user":{"username":"u"}}}`),
		"more than a review can be":       body(201, review+strings.Repeat(" ", 1<<20)),
		"a redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://elsewhere.invalid/")
			w.WriteHeader(307)
		},
		"the other review": nil,
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			p.api.AcceptUser("known", "u")
			p.api.AcceptUser("good", "u")
			p.api.Grant("u", "list", "runs", "app-shop-cicd")
			c := p.caller(t, "known")
			p.api.Fail(func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.URL.Host == "elsewhere.invalid":
					t.Error("the redirect was followed")
				case answer != nil:
					answer(w)
				case r.URL.Path == apifake.TokenReviews:
					body(201, access)(w)
				default:
					body(201, review)(w)
				}
				return true
			})
			for _, purpose := range []authn.Purpose{authn.ForRead, authn.ForWrite} {
				if got := p.authenticate(t.Context(), "good", purpose); got != "GP-API-502" {
					t.Errorf("token, %v: got %s", purpose, got)
				}
				allowed, err := p.access.Allowed(t.Context(), c, list, purpose)
				if allowed || err == nil || problem.From(err).Rule.ID != "GP-API-502" {
					t.Errorf("access, %v: got %v %v", purpose, allowed, err)
				}
				if err != nil && strings.Contains(err.Error(), "good") {
					t.Errorf("the token shows: %v", err)
				}
			}
			p.api.Fail(nil)
			if got := p.authenticate(t.Context(), "good", authn.ForRead); got != "u" {
				t.Errorf("once the API server is back: %s", got)
			}
			if allowed, err := p.access.Allowed(t.Context(), c, list, authn.ForRead); !allowed || err != nil {
				t.Errorf("once the API server is back: %v %v", allowed, err)
			}
		})
	}
}

func TestTheStatusOfATokenReview(t *testing.T) {
	for name, tc := range map[string]struct{ status, want string }{
		"authenticated":              {`{"authenticated":true,"user":{"username":"u"}}`, "u"},
		"not authenticated":          {`{"authenticated":false,"user":{"username":"u"}}`, "GP-AUTH-002"},
		"a user but no word of it":   {`{"user":{"username":"u"}}`, "GP-AUTH-002"},
		"an empty status":            {`{}`, "GP-AUTH-002"},
		"authenticated and an error": {`{"authenticated":true,"error":"webhook timeout","user":{"username":"u"}}`, "GP-AUTH-002"},
		"nobody":                     {`{"authenticated":true,"user":{}}`, "GP-AUTH-002"},
		"anonymous":                  {`{"authenticated":true,"user":{"username":"system:anonymous"}}`, "GP-AUTH-002"},
		"a person":                   {`{"authenticated":true,"user":{"username":"people:octocat"}}`, "GP-AUTH-002"},
		"a name that breaks lines":   {`{"authenticated":true,"user":{"username":"a\nb"}}`, "GP-AUTH-002"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			p.api.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","metadata":{},"spec":{"token":"x"},"status":` + tc.status + `}`))
				return true
			})
			for _, purpose := range []authn.Purpose{authn.ForRead, authn.ForWrite} {
				if got := p.authenticate(t.Context(), "x", purpose); got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
			}
		})
	}
}

func TestTheStatusOfAnAccessReview(t *testing.T) {
	for name, tc := range map[string]struct {
		status string
		want   bool
	}{
		"allowed":                        {`{"allowed":true,"reason":"RBAC"}`, true},
		"not allowed":                    {`{"allowed":false}`, false},
		"an empty status":                {`{}`, false},
		"allowed and denied":             {`{"allowed":true,"denied":true}`, false},
		"allowed despite an error":       {`{"allowed":true,"evaluationError":"clusterrole not found"}`, true},
		"an error and nothing else":      {`{"allowed":false,"evaluationError":"clusterrole not found"}`, false},
		"a reason that says it is fine ": {`{"reason":"allowed"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			p.api.AcceptUser("good", "u")
			c := p.caller(t, "good")
			p.api.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write([]byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","metadata":{},"spec":{},"status":` + tc.status + `}`))
				return true
			})
			for _, purpose := range []authn.Purpose{authn.ForRead, authn.ForWrite} {
				if got, err := p.access.Allowed(t.Context(), c, list, purpose); got != tc.want || err != nil {
					t.Errorf("got %v %v, want %v", got, err, tc.want)
				}
			}
		})
	}
}

func TestACallerThatLeavesGetsNoAnswerAndLeavesNoTrace(t *testing.T) {
	p := start(t)
	p.api.AcceptUser("good", "u")
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, purpose := range []authn.Purpose{authn.ForRead, authn.ForWrite} {
		if got := p.authenticate(gone, "good", purpose); got != "GP-API-502" {
			t.Errorf("%v: got %s", purpose, got)
		}
	}
	if got := p.authenticate(t.Context(), "good", authn.ForWrite); got != "u" {
		t.Errorf("the next caller: %s", got)
	}
}

func TestTheGaugesSayHowManyAnswersAreKept(t *testing.T) {
	p := start(t)
	p.api.AcceptUser("good", "u")
	p.api.AcceptUser("better", "v")
	p.authenticate(t.Context(), "bad", authn.ForRead)
	for _, user := range []string{"good", "better"} {
		for range 2 {
			if _, err := p.access.Allowed(t.Context(), p.caller(t, user), list, authn.ForRead); err != nil {
				t.Fatal(err)
			}
		}
	}
	for cache, want := range map[string]float64{"token": 2, "token-refused": 1, "access": 2} {
		if got := p.count(t, "glidepath_authz_cache_entries", prometheus.Labels{"cache": cache}); got != want {
			t.Errorf("%s holds %v answers, want %v", cache, got, want)
		}
	}
}

func TestTheMetricsOfReviewsFollowTheConventions(t *testing.T) {
	p := start(t)
	problems, err := testutil.GatherAndLint(p.reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	if _, err := review.NewSlots(review.Limits{}); err == nil {
		t.Error("slots without limits were made")
	}
}
