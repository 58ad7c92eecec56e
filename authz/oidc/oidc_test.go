package oidc_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/jwks"
	"hangar.io/glidepath/authz/oidc"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/problem"
)

const (
	issuer   = "https://dex.example/dex"
	audience = "glidepath-api"
)

// keys says of every token what it is told, and counts.
type keys struct {
	err   error
	asked int
	last  authn.Purpose
}

func (k *keys) Verify(_ context.Context, t token.Token, p authn.Purpose, _ time.Duration) ([]byte, error) {
	k.asked++
	k.last = p
	if k.err != nil {
		return nil, k.err
	}
	part := strings.Split(t.Secret(), ".")[1]
	raw, err := jwt.NewParser().DecodeSegment(part)
	if err != nil {
		return nil, jwks.ErrSignature
	}
	return raw, nil
}

func authenticator(t testing.TB, k oidc.Keys, allowed ...string) *oidc.Authenticator {
	t.Helper()
	list, err := oidc.NewAllowed(allowed)
	if err != nil {
		t.Fatal(err)
	}
	a, err := oidc.New(oidc.Config{Issuer: issuer, Audience: audience, Allowed: list, Keys: k, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// claims are those of a real Dex's ID token for jo-hub, with changes; a nil
// takes a claim away.
func claims(changes map[string]any) jwt.MapClaims {
	now := time.Now().Unix()
	c := jwt.MapClaims{
		"iss": issuer, "sub": "CgI0MhIFbG9jYWw", "aud": audience, "exp": now + 3600, "iat": now,
		"jti": "696acaca-7c60-4bf8-905e-75982fa2a617", "at_hash": "Nj0JqWh0Roa8qzeGkh9_6A", "email": "jo@example.com",
		"email_verified": true, "name": "jo", "groups": []string{"system:masters"}, "preferred_username": "jo-hub",
		"federated_claims": map[string]any{"connector_id": "local", "user_id": "42"},
	}
	for k, v := range changes {
		c[k] = v
		if v == nil {
			delete(c, k)
		}
	}
	return c
}

type sent string

func (s sent) Get(name string) (string, int) {
	if name != token.DirectHeader {
		return "", 0
	}
	return "Bearer " + string(s), 1
}

func idToken(t testing.TB, c jwt.MapClaims) token.Token {
	t.Helper()
	s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString([]byte("whatever"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := token.FromHeaders(sent(s))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestAPersonIsWhoTheIDTokenSays(t *testing.T) {
	a := authenticator(t, &keys{}, "jo-hub")
	c, err := a.Authenticate(t.Context(), idToken(t, claims(nil)), authn.ForRead)
	if err != nil {
		t.Fatal(err)
	}
	if c.Kind != authn.Person || c.Username != "people:jo-hub" || c.UID != "CgI0MhIFbG9jYWw" || len(c.Extra) != 0 ||
		!slices.Equal(c.Groups, []string{"system:authenticated"}) || !slices.Equal(c.Audiences, []string{audience}) {
		t.Errorf("got %+v", c)
	}
}

func TestWhatAnIDTokenIsHeldTo(t *testing.T) {
	now := time.Now()
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for name, tc := range map[string]struct {
		changes map[string]any
		want    string // part of the message, empty when it is accepted
	}{
		"one of Dex's":                                  {nil, ""},
		"an audience in a list":                         {map[string]any{"aud": []string{audience}}, ""},
		"two audiences, made for this client":           {map[string]any{"aud": []string{"other", audience}, "azp": audience}, ""},
		"two audiences, made for another client":        {map[string]any{"aud": []string{audience, "clearance"}, "azp": "clearance"}, "another client"},
		"two audiences, made for nobody says whom":      {map[string]any{"aud": []string{audience, "clearance"}}, "another client"},
		"one audience, made for another client":         {map[string]any{"azp": "clearance"}, "another client"},
		"another audience":                              {map[string]any{"aud": "clearance"}, "another client"},
		"an audience that begins the same":              {map[string]any{"aud": audience + "-x"}, "another client"},
		"an audience in capitals":                       {map[string]any{"aud": strings.ToUpper(audience)}, "another client"},
		"no audience":                                   {map[string]any{"aud": nil}, "another client"},
		"an empty list of audiences":                    {map[string]any{"aud": []string{}}, "another client"},
		"an audience that is a number":                  {map[string]any{"aud": 1}, "cannot be read"},
		"an audience among things that are none":        {map[string]any{"aud": []any{audience, 1}}, "cannot be read"},
		"another issuer":                                {map[string]any{"iss": issuer + "/"}, "another issuer"},
		"no issuer":                                     {map[string]any{"iss": nil}, "another issuer"},
		"an end within the leeway":                      {map[string]any{"exp": at(-25 * time.Second)}, ""},
		"an end before it":                              {map[string]any{"exp": at(-31 * time.Second)}, "expired"},
		"no end":                                        {map[string]any{"exp": nil}, "when it is good"},
		"an end beyond all dates":                       {map[string]any{"exp": 1e15}, "when it is good"},
		"an end of zero":                                {map[string]any{"exp": 0}, "when it is good"},
		"an end that is a text":                         {map[string]any{"exp": "1"}, "cannot be read"},
		"a beginning within the leeway":                 {map[string]any{"nbf": at(25 * time.Second)}, ""},
		"a beginning after it":                          {map[string]any{"nbf": at(40 * time.Second)}, "not good yet"},
		"a beginning that is no date":                   {map[string]any{"nbf": -1}, "when it is good"},
		"made a little later than now":                  {map[string]any{"iat": at(25 * time.Second)}, ""},
		"made long after now":                           {map[string]any{"iat": at(40 * time.Second)}, "not good yet"},
		"made nobody says when":                         {map[string]any{"iat": nil}, "when it is good"},
		"no subject":                                    {map[string]any{"sub": nil}, "subject"},
		"an empty subject":                              {map[string]any{"sub": ""}, "subject"},
		"a subject with a line break":                   {map[string]any{"sub": "a\nb"}, "subject"},
		"a subject that turns the text around it":       {map[string]any{"sub": "a\u202eb"}, "subject"},
		"a subject with a separator of lines":           {map[string]any{"sub": "a\u2028b"}, "subject"},
		"a subject that is too long":                    {map[string]any{"sub": strings.Repeat("a", 256)}, "subject"},
		"no login":                                      {map[string]any{"preferred_username": nil}, "preferred_username"},
		"an empty login":                                {map[string]any{"preferred_username": ""}, "preferred_username"},
		"a login with a space":                          {map[string]any{"preferred_username": "jo hub"}, "preferred_username"},
		"a login that would be another kind of name":    {map[string]any{"preferred_username": "jo:hub"}, "preferred_username"},
		"a login with a letter that looks like another": {map[string]any{"preferred_username": "jо-hub"}, "preferred_username"},
		"a login of 40 characters":                      {map[string]any{"preferred_username": strings.Repeat("a", 40)}, "preferred_username"},
		"a login that is a list":                        {map[string]any{"preferred_username": []string{"jo-hub"}}, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			a := authenticator(t, &keys{}, "jo-hub")
			for _, p := range []authn.Purpose{authn.ForRead, authn.ForWrite} {
				c, err := a.Authenticate(t.Context(), idToken(t, claims(tc.changes)), p)
				if tc.want == "" {
					if err != nil || c.Username != "people:jo-hub" {
						t.Errorf("got %v, %v", c, err)
					}
					continue
				}
				answer := problem.From(err)
				if err == nil || c != nil || answer.Rule.ID != "GP-AUTH-002" || !strings.Contains(answer.Message, tc.want) {
					t.Errorf("got %v, %v", c, err)
				}
			}
		})
	}
}

func TestClaimsThatTwoReadersWouldReadDifferently(t *testing.T) {
	good := `"iss":"` + issuer + `","sub":"s","aud":"` + audience + `","exp":4000000000,"iat":1,"preferred_username":"jo-hub"`
	for name, tc := range map[string]struct {
		payload string
		good    bool
	}{
		"as they should be":          {`{` + good + `}`, true},
		"other claims in other case": {`{` + good + `,"Aud":"x","EXP":1}`, true},
		"a login twice":              {`{` + good + `,"preferred_username":"al"}`, false},
		"anything twice":             {`{` + good + `,"groups":[],"groups":["a"]}`, false},
		"something after the end":    {`{` + good + `}{}`, false},
		"a byte order mark":          {"\ufeff{" + good + `}`, false},
		"text that is none":          {`{` + good + `,"name":"` + "\xff" + `"}`, false},
		"an end in capitals":         {strings.Replace(`{`+good+`}`, `"exp"`, `"EXP"`, 1), false},
		"a list":                     {`[` + `]`, false},
		"nothing":                    {``, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := authenticator(t, payload(tc.payload), "jo-hub", "al")
			_, err := a.Authenticate(t.Context(), idToken(t, claims(nil)), authn.ForRead)
			if (err == nil) != tc.good || err != nil && problem.From(err).Rule.ID != "GP-AUTH-002" {
				t.Errorf("got %v", err)
			}
		})
	}
}

// payload is what every token holds.
type payload string

func (p payload) Verify(context.Context, token.Token, authn.Purpose, time.Duration) ([]byte, error) {
	return []byte(p), nil
}

func TestWhoMaySignIn(t *testing.T) {
	for name, tc := range map[string]struct {
		allowed []string
		changes map[string]any
		want    string
	}{
		"a login that is listed":                    {[]string{"al", "jo-hub"}, nil, ""},
		"one that is not":                           {[]string{"al"}, nil, "jo-hub is not among"},
		"one in other capitals":                     {[]string{"Jo-Hub"}, nil, "jo-hub is not among"},
		"one that begins a listed one":              {[]string{"jo-hub-2"}, nil, "not among"},
		"the account that is listed":                {[]string{"jo-hub:id=42"}, nil, ""},
		"another account that took the login":       {[]string{"jo-hub:id=41"}, nil, "not the one"},
		"an account that the token does not tell":   {[]string{"jo-hub:id=42"}, map[string]any{"federated_claims": nil}, "federated:id"},
		"the subject that is listed":                {[]string{"jo-hub:sub=CgI0MhIFbG9jYWw"}, nil, ""},
		"another subject":                           {[]string{"jo-hub:sub=CgI0MRIFbG9jYWw"}, nil, "not the one"},
		"an id that is somebody's subject":          {[]string{"jo-hub:id=CgI0MhIFbG9jYWw"}, nil, "not the one"},
		"a listed account under a login of its own": {[]string{"al:id=42"}, nil, "not among"},
	} {
		t.Run(name, func(t *testing.T) {
			a := authenticator(t, &keys{}, tc.allowed...)
			c, err := a.Authenticate(t.Context(), idToken(t, claims(tc.changes)), authn.ForRead)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			answer := problem.From(err)
			if c != nil || answer.Rule.ID != "GP-AUTH-005" || !strings.Contains(answer.Message+answer.Body("").Hint, tc.want) {
				t.Errorf("got %v, %+v", c, answer)
			}
		})
	}
}

func TestAListOfPeopleThatIsNotTaken(t *testing.T) {
	for name, tc := range map[string]struct {
		entries []string
		want    string
	}{
		"nobody":               {nil, "nobody is allowed"},
		"an empty entry":       {[]string{"jo", ""}, "not a login"},
		"a star":               {[]string{"*"}, "not a login"},
		"a user name":          {[]string{"people:jo"}, "empty id"},
		"an id without a kind": {[]string{"jo:42"}, "id"},
		"an empty id":          {[]string{"jo:id="}, "empty id"},
		"the same login twice": {[]string{"jo", "jo:id=1"}, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := oidc.NewAllowed(tc.entries); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhatTheKeysSayIsWhatTheCallerHears(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		rule string
	}{
		"a bad signature":     {jwks.ErrSignature, "GP-AUTH-002"},
		"an unknown key":      {jwks.ErrUnknownKey, "GP-AUTH-002"},
		"no keys":             {jwks.ErrNoKeys, "GP-API-502"},
		"an error of no kind": {errors.New("oops"), "GP-API-502"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := authenticator(t, &keys{err: tc.err}, "jo-hub").Authenticate(t.Context(), idToken(t, claims(nil)), authn.ForRead)
			if c != nil || problem.From(err).Rule.ID != tc.rule {
				t.Errorf("got %v, %v", c, err)
			}
		})
	}
}

// rule: R061
func TestATokenIsRememberedForReadsAndNeverBeyondItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keys{}
		a := authenticator(t, k, "jo-hub")
		long := idToken(t, claims(nil))
		ask := func(tok token.Token, p authn.Purpose, rule string, asked int) {
			t.Helper()
			before := k.asked
			_, err := a.Authenticate(t.Context(), tok, p)
			got := ""
			if err != nil {
				got = problem.From(err).Rule.ID
			}
			if got != rule || k.asked-before != asked {
				t.Errorf("got %q, keys asked %d times", got, k.asked-before)
			}
		}
		ask(long, authn.ForRead, "", 1)
		ask(long, authn.ForRead, "", 0)
		ask(long, authn.ForWrite, "", 1)
		time.Sleep(10 * time.Second)
		ask(long, authn.ForRead, "", 1)
		k.err = jwks.ErrUnknownKey // withdrawn
		ask(long, authn.ForWrite, "GP-AUTH-002", 1)
		time.Sleep(10 * time.Second)
		ask(long, authn.ForRead, "GP-AUTH-002", 1)

		k.err = nil
		short := idToken(t, claims(map[string]any{"exp": time.Now().Add(5 * time.Second).Unix()}))
		ask(short, authn.ForRead, "", 1)
		ask(short, authn.ForRead, "", 0)
		time.Sleep(5 * time.Second)
		ask(short, authn.ForRead, "", 1) // the leeway, verified anew each time
		ask(short, authn.ForRead, "", 1)
		time.Sleep(oidc.Leeway)
		ask(short, authn.ForRead, "GP-AUTH-002", 1)
		// An hour later nothing has renewed the first one.
		time.Sleep(time.Hour)
		ask(long, authn.ForRead, "GP-AUTH-002", 1)
	})
}

func TestNoAnswerRepeatsTheToken(t *testing.T) {
	tok := idToken(t, claims(map[string]any{"aud": "clearance"}))
	for _, k := range []*keys{{}, {err: jwks.ErrSignature}, {err: jwks.ErrNoKeys}} {
		_, err := authenticator(t, k, "jo-hub").Authenticate(t.Context(), tok, authn.ForWrite)
		if err == nil || strings.Contains(err.Error(), tok.Secret()) || strings.Contains(err.Error(), "clearance") {
			t.Errorf("got %v", err)
		}
	}
}

func TestASignatureThatGetsNoTurnIsNoVerdict(t *testing.T) {
	k := &keys{err: errors.New("too many wait")}
	a := authenticator(t, k, "jo-hub")
	for _, p := range []authn.Purpose{authn.ForRead, authn.ForWrite} {
		_, err := a.Authenticate(t.Context(), idToken(t, claims(nil)), p)
		if got := problem.From(err); got.Rule.ID != "GP-API-502" || strings.Contains(got.Error(), "not known") {
			t.Errorf("got %v", err)
		}
		if k.last != p {
			t.Errorf("asked for %v, want %v", k.last, p)
		}
	}
}

func FuzzClaims(f *testing.F) {
	for c := range maps.Values(map[int]string{0: `{}`, 1: `{"iss":"` + issuer + `","aud":["` + audience + `"],"exp":4e9,"iat":1,"sub":"s","preferred_username":"jo-hub"}`, 2: `{"aud":{}}`}) {
		f.Add(c)
	}
	list, err := oidc.NewAllowed([]string{"jo-hub"})
	if err != nil {
		f.Fatal(err)
	}
	tok := idToken(f, claims(nil))
	f.Fuzz(func(t *testing.T, body string) {
		a, err := oidc.New(oidc.Config{Issuer: issuer, Audience: audience, Allowed: list, Keys: payload(body), Metrics: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		c, err := a.Authenticate(t.Context(), tok, authn.ForWrite)
		if (c == nil) == (err == nil) || c != nil && c.Username != "people:jo-hub" {
			t.Errorf("%q: %v, %v", body, c, err)
		}
	})
}
