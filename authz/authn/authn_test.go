package authn_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/token"
)

func TestNewClusterCaller(t *testing.T) {
	for name, tc := range map[string]struct {
		username string
		kind     authn.Kind
	}{
		"a ServiceAccount":                                 {"system:serviceaccount:ci:runner", authn.ServiceAccount},
		"a user of the cluster":                            {"oidc:dev@example.com", authn.User},
		"a federated identity":                             {"hangar:prod:tower", authn.User},
		"a name of other letters":                          {"user:jürgen", authn.User},
		"people without a colon are not persons":           {"peoples", authn.User},
		"nobody":                                           {"", ""},
		"the anonymous user":                               {"system:anonymous", ""},
		"a person's name, which the cluster has no say in": {"people:octocat", ""},
		"a name with a line break":                         {"a\nX-Admin: 1", ""},
		"a name with a NUL byte":                           {"a\x00", ""},
		"a name that is no text":                           {"a\xff", ""},
		"a name with a character that changes the text's direction": {"a\u202eb", ""},
		"a name of a kilobyte": {strings.Repeat("a", 1024), authn.User},
		"a longer name":        {strings.Repeat("a", 1025), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := authn.NewClusterCaller(authn.Facts{Username: tc.username})
			if tc.kind == "" {
				if err == nil {
					t.Fatalf("taken as %+v", c)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Username != tc.username || c.Kind != tc.kind {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func caller(t *testing.T, f authn.Facts) *authn.Caller {
	t.Helper()
	c, err := authn.NewClusterCaller(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCallersThatDifferInAnythingHaveDifferentDigests(t *testing.T) {
	extra := func(kv ...string) map[string][]string {
		m := map[string][]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = append(m[kv[i]], kv[i+1])
		}
		return m
	}
	subjects := []authn.Facts{
		{Username: "a"},
		{Username: "ab"},
		{Username: "a", UID: "b"},
		{Username: "a", Groups: []string{"b"}},
		{Username: "a", Groups: []string{"b", "c"}},
		{Username: "a", Groups: []string{"bc"}},
		{Username: "a", Groups: []string{"b", ""}},
		{Username: "a", Extra: extra("b", "c")},
		{Username: "a", Extra: extra("b", "c", "b", "d")},
		{Username: "a", Extra: extra("b", "c", "d", "e")},
		{Username: "a", Extra: extra("bc", "")},
		{Username: "a", Groups: []string{"b"}, Extra: extra("c", "d")},
	}
	seen := map[authn.Digest]int{}
	for i, f := range subjects {
		d := caller(t, f).Subject()
		if j, twice := seen[d]; twice {
			t.Errorf("%+v and %+v have one digest", subjects[j], f)
		}
		seen[d] = i
		if caller(t, f).Subject() != d {
			t.Errorf("%+v has two digests", f)
		}
	}
	one := authn.Facts{Username: "a", Audiences: []string{"x"}}
	two := authn.Facts{Username: "a", Audiences: []string{"y"}}
	if caller(t, one).Subject() != caller(t, two).Subject() {
		t.Error("audiences are no part of a review")
	}
	if caller(t, one).Whole() == caller(t, two).Whole() {
		t.Error("audiences are part of the whole")
	}
}

// says is an authenticator that answers with its own name.
type says string

func (s says) Authenticate(context.Context, token.Token, authn.Purpose) (*authn.Caller, error) {
	return &authn.Caller{Facts: authn.Facts{Username: string(s)}}, nil
}

func TestATokenIsJudgedByTheAuthenticatorOfItsIssuer(t *testing.T) {
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	b := authn.ByIssuer{Issuers: map[string]authn.Authenticator{"https://people": says("people")}, Default: says("cluster")}
	for name, tc := range map[string]struct{ token, judge string }{
		"a token of a known issuer":        {jwt(`{"iss":"https://people"}`), "people"},
		"a token of another issuer":        {jwt(`{"iss":"https://kubernetes"}`), "cluster"},
		"a longer name of a known issuer":  {jwt(`{"iss":"https://people/"}`), "cluster"},
		"a JWT without an issuer":          {jwt(`{}`), "cluster"},
		"a token that is no JWT":           {"abc", "cluster"},
		"a token that names two of them":   {jwt(`{"iss":"x","iss":"https://people"}`), "people"},
		"one that goes on after its end":   {jwt(`{"iss":"https://people"}{`), "people"},
		"one that is cut off":              {jwt(`{"iss":"https://people","exp":`), "people"},
		"one with text that is none":       {jwt(`{"sub":"` + "\xff" + `","iss":"https://people"}`), "people"},
		"one with a byte order mark":       {jwt("\ufeff" + `{"iss":"https://people"}`), "people"},
		"an issuer deep inside":            {jwt(`{"x":{"iss":"https://people"}}`), "cluster"},
		"an issuer in other capitals":      {jwt(`{"ISS":"https://people"}`), "cluster"},
		"an issuer that is the empty text": {jwt(`{"iss":""}`), "cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := token.FromHeaders(bearer(tc.token))
			if err != nil {
				t.Fatal(err)
			}
			c, err := b.Authenticate(t.Context(), tok, authn.ForRead)
			if err != nil || c.Username != tc.judge {
				t.Errorf("judged by %v, %v", c, err)
			}
		})
	}
}

// recalls is one that remembers every token.
type recalls string

func (r recalls) Authenticate(context.Context, token.Token, authn.Purpose) (*authn.Caller, error) {
	return &authn.Caller{Facts: authn.Facts{Username: string(r)}}, nil
}

func (r recalls) Remembered(token.Token) (*authn.Caller, bool) {
	return &authn.Caller{Facts: authn.Facts{Username: string(r) + ", remembered"}}, true
}

// The claims of a token that was accepted a moment ago are not read again: what
// they say here is where a call goes whose token is not remembered.
func TestARememberedTokenIsNotReadAgainAndForReadsAlone(t *testing.T) {
	tok, err := token.FromHeaders(bearer("e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://people"}`)) + ".c2ln"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		people, cluster authn.Authenticator
		read, write     string
	}{
		"the cluster remembers":  {says("people"), recalls("cluster"), "cluster, remembered", "people"},
		"the people's remembers": {recalls("people"), says("cluster"), "people, remembered", "people"},
		"nobody remembers":       {says("people"), says("cluster"), "people", "people"},
	} {
		b := authn.ByIssuer{Issuers: map[string]authn.Authenticator{"https://people": tc.people}, Default: tc.cluster}
		for p, want := range map[authn.Purpose]string{authn.ForRead: tc.read, authn.ForWrite: tc.write} {
			if c, err := b.Authenticate(t.Context(), tok, p); err != nil || c.Username != want {
				t.Errorf("%s: judged by %v, %v, want %s", name, c, err, want)
			}
		}
	}
}

func TestAPersonsName(t *testing.T) {
	for login, usable := range map[string]bool{
		"octocat": true, "Jo-Hub": true, "a": true, "42": true, "jo_corp": true, "legacy-": true, strings.Repeat("a", 39): true,
		"": false, "-jo": false, "_jo": false, "jo.hub": false, "jo hub": false, "jo:hub": false, "jo/hub": false, "jo@hub": false,
		"jö": false, "jo\n": false, "jo[bot]": false, "jo,al": false, strings.Repeat("a", 40): false,
	} {
		c, err := authn.NewPerson(login, authn.Facts{Username: "system:admin"})
		if (err == nil) != usable {
			t.Errorf("%q: %v", login, err)
		}
		if usable && (c.Username != "people:"+login || c.Kind != authn.Person) {
			t.Errorf("%q became %+v", login, c)
		}
	}
}

type bearer string

func (b bearer) Get(name string) (string, int) {
	if name != token.DirectHeader {
		return "", 0
	}
	return "Bearer " + string(b), 1
}
