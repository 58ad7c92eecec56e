package token_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/problem"
)

// sent is a request's headers with every value that was sent.
type sent map[string][]string

func (s sent) Get(name string) (string, int) {
	values := s[name]
	if len(values) == 0 {
		return "", 0
	}
	return strings.Join(values, ","), len(values)
}

// rule: R388
func TestFromHeaders(t *testing.T) {
	none, bad := problem.AuthNoToken.ID, problem.AuthBadToken.ID
	for name, tc := range map[string]struct {
		headers sent
		token   string
		rule    string
	}{
		"no header at all is no token":                      {sent{}, "", none},
		"the bearer token of Authorization":                 {sent{"authorization": {"Bearer abc.def"}}, "abc.def", ""},
		"the scheme in any case":                            {sent{"authorization": {"bEARER abc"}}, "abc", ""},
		"several spaces before the token":                   {sent{"authorization": {"Bearer   abc"}}, "abc", ""},
		"spaces around the header":                          {sent{"authorization": {" Bearer abc "}}, "abc", ""},
		"padding at the end":                                {sent{"authorization": {"Bearer YWJj=="}}, "YWJj==", ""},
		"a bootstrap token":                                 {sent{"authorization": {"Bearer abcdef.0123456789abcdef"}}, "abcdef.0123456789abcdef", ""},
		"the proxy's header":                                {sent{"x-glidepath-authorization": {"Bearer abc"}}, "abc", ""},
		"the proxy's header wins":                           {sent{"x-glidepath-authorization": {"Bearer mine"}, "authorization": {"Bearer proxy"}}, "mine", ""},
		"a bad proxy's header does not fall back":           {sent{"x-glidepath-authorization": {"Bearer !"}, "authorization": {"Bearer proxy"}}, "", bad},
		"an empty proxy's header does not fall back":        {sent{"x-glidepath-authorization": {""}, "authorization": {"Bearer proxy"}}, "", none},
		"another scheme in it does not fall back":           {sent{"x-glidepath-authorization": {"Basic YTpi"}, "authorization": {"Bearer proxy"}}, "", none},
		"another scheme is no bearer token":                 {sent{"authorization": {"Basic YTpi"}}, "", none},
		"a scheme that only starts like it":                 {sent{"authorization": {"Bearerx abc"}}, "", none},
		"a scheme with a colon":                             {sent{"authorization": {"Bearer: abc"}}, "", none},
		"the bare token":                                    {sent{"authorization": {"abc"}}, "", none},
		"an empty header":                                   {sent{"authorization": {""}}, "", none},
		"an empty bearer":                                   {sent{"authorization": {"Bearer"}}, "", none},
		"a bearer of spaces":                                {sent{"authorization": {"Bearer   "}}, "", none},
		"a tab is no space":                                 {sent{"authorization": {"Bearer\tabc"}}, "", none},
		"two tokens joined":                                 {sent{"authorization": {"Bearer a,Bearer b"}}, "", bad},
		"two tokens joined with a space":                    {sent{"authorization": {"Bearer a, Bearer b"}}, "", bad},
		"a header sent twice":                               {sent{"authorization": {"Bearer a", "Bearer a"}}, "", bad},
		"a proxy's header sent twice":                       {sent{"x-glidepath-authorization": {"Bearer a", "Bearer b"}}, "", bad},
		"an empty header and a token":                       {sent{"authorization": {"", "Bearer b"}}, "", bad},
		"two words after the scheme":                        {sent{"authorization": {"Bearer a b"}}, "", bad},
		"a quoted token":                                    {sent{"authorization": {`Bearer "a"`}}, "", bad},
		"a parameter after the token":                       {sent{"authorization": {"Bearer a;x=y"}}, "", bad},
		"padding in the middle":                             {sent{"authorization": {"Bearer token=a"}}, "", bad},
		"padding alone":                                     {sent{"authorization": {"Bearer =="}}, "", bad},
		"a NUL byte":                                        {sent{"authorization": {"Bearer a\x00"}}, "", bad},
		"a line break":                                      {sent{"authorization": {"Bearer a\nb"}}, "", bad},
		"a letter that is not ASCII":                        {sent{"authorization": {"Bearer ä"}}, "", bad},
		"the longest token":                                 {sent{"authorization": {"Bearer " + strings.Repeat("a", token.MaxBytes)}}, strings.Repeat("a", token.MaxBytes), ""},
		"a token longer than that":                          {sent{"authorization": {"Bearer " + strings.Repeat("a", token.MaxBytes+1)}}, "", bad},
		"a header in upper case, which Envoy never sends":   {sent{"Authorization": {"Bearer abc"}}, "", none},
		"a cookie or a query parameter is no token, either": {sent{"cookie": {"authorization=Bearer abc"}}, "", none},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := token.FromHeaders(tc.headers)
			if tc.rule != "" {
				if err == nil || problem.From(err).Rule.ID != tc.rule {
					t.Fatalf("got %v, want %s", err, tc.rule)
				}
				if body := problem.From(err).Body(""); strings.HasPrefix(body.Message, "more than one") != (body.Hint == "send one header with one token") {
					t.Errorf("the hint is %q at %q", body.Hint, body.Message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Secret() != tc.token {
				t.Errorf("got %q, want %q", got.Secret(), tc.token)
			}
		})
	}
}

func TestTheFormsOfAHeaderAroundOneToken(t *testing.T) {
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES names no folder of shared cases")
	}
	raw, err := os.ReadFile(filepath.Join(cases, "http", "jwt", "authorization-header-forms.json"))
	if err != nil {
		t.Fatal(err)
	}
	var forms []struct{ Value, Expected string }
	if err := json.Unmarshal(raw, &forms); err != nil {
		t.Fatal(err)
	}
	if len(forms) == 0 {
		t.Fatal("no forms")
	}
	for _, f := range forms {
		value := strings.ReplaceAll(strings.ReplaceAll(f.Value, "<T>", "a.b.c"), "<T2>", "d.e.f")
		got, err := token.FromHeaders(sent{"authorization": {value}})
		switch {
		case f.Expected == "accept" && (err != nil || got.Secret() != "a.b.c"):
			t.Errorf("%q: %v", f.Value, err)
		case f.Expected == "reject" && err == nil:
			t.Errorf("%q was taken as %q", f.Value, got.Secret())
		case err == nil && got.Secret() != "a.b.c":
			t.Errorf("%q was taken as another token, %q", f.Value, got.Secret())
		}
	}
}

func TestATokenIsNeverPrinted(t *testing.T) {
	tok, err := token.FromHeaders(sent{"authorization": {"Bearer top-secret"}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "token", tok, "in", []token.Token{tok})
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "token", tok)
	fmt.Fprintf(&out, "%v %+v %#v %s %q", tok, tok, tok, tok, tok)
	fmt.Fprintf(&out, "%v %+v", struct{ T token.Token }{tok}, &struct{ T token.Token }{tok})
	if strings.Contains(out.String(), "top-secret") {
		t.Errorf("the token shows: %s", out.String())
	}
}

func jwtOf(claims string) string {
	e := base64.RawURLEncoding.EncodeToString
	return e([]byte(`{"alg":"ES256"}`)) + "." + e([]byte(claims)) + "." + e([]byte("signature"))
}

func TestUnverified(t *testing.T) {
	for name, tc := range map[string]struct {
		token  string
		issuer string
		expiry int64
	}{
		"a JWT's issuer and expiry":           {jwtOf(`{"iss":"https://a","exp":1800000000,"sub":"x"}`), "https://a", 1800000000},
		"an expiry with a fraction":           {jwtOf(`{"iss":"https://a","exp":1800000000.75}`), "https://a", 1800000000},
		"a JWT without either":                {jwtOf(`{"sub":"x"}`), "", 0},
		"an expiry before time began":         {jwtOf(`{"iss":"a","exp":-5}`), "a", 0},
		"an expiry beyond every date":         {jwtOf(`{"iss":"a","exp":1e300}`), "a", 0},
		"an expiry that is a text":            {jwtOf(`{"iss":"a","exp":"1800000000"}`), "", 0},
		"an issuer that is a list":            {jwtOf(`{"iss":["a"]}`), "", 0},
		"two issuers":                         {jwtOf(`{"iss":"a","iss":"b"}`), "", 0},
		"claims that are no object":           {jwtOf(`[]`), "", 0},
		"claims that are not JSON":            {jwtOf(`{`), "", 0},
		"claims in another case":              {jwtOf(`{"ISS":"a","EXP":1800000000}`), "", 0},
		"a token of two parts":                {"a.b", "", 0},
		"a token of four parts":               {jwtOf(`{"iss":"a"}`) + ".d", "", 0},
		"a token of one part":                 {"abc", "", 0},
		"claims of another alphabet":          {"a.eyJpc3MiOiI/In0.c", "", 0},
		"a legacy token, which never expires": {jwtOf(`{"iss":"kubernetes/serviceaccount"}`), "kubernetes/serviceaccount", 0},
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := token.FromHeaders(sent{"authorization": {"Bearer " + tc.token}})
			if err != nil {
				t.Fatal(err)
			}
			got := tok.Unverified()
			want := token.Unverified{Issuer: tc.issuer}
			if tc.expiry != 0 {
				want.Expiry = time.Unix(tc.expiry, 0)
			}
			if got.Issuer != want.Issuer || !got.Expiry.Equal(want.Expiry) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func FuzzFromHeaders(f *testing.F) {
	for _, v := range []string{"Bearer a.b.c", "bearer  a", "Bearer a,Bearer b", "Basic YTpi", "Bearer ", "\x00", jwtOf(`{"iss":"a","exp":1}`)} {
		f.Add(v, "", true, false)
		f.Add("", v, false, true)
		f.Add(v, v, true, true)
	}
	f.Fuzz(func(t *testing.T, proxy, direct string, hasProxy, hasDirect bool) {
		h := sent{}
		if hasProxy {
			h[token.ProxyHeader] = []string{proxy}
		}
		if hasDirect {
			h[token.DirectHeader] = []string{direct}
		}
		tok, err := token.FromHeaders(h)
		if err != nil {
			rule := problem.From(err).Rule.ID
			if rule != problem.AuthNoToken.ID && rule != problem.AuthBadToken.ID {
				t.Errorf("refused with %s", rule)
			}
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 200 {
				t.Errorf("the refusal repeats what was sent: %q", err)
			}
			return
		}
		source := direct
		if hasProxy {
			source = proxy
		}
		secret := tok.Secret()
		if secret == "" || len(secret) > token.MaxBytes || strings.ContainsAny(secret, ", \t\r\n\x00\"") || !strings.Contains(source, secret) {
			t.Errorf("%q was taken from %q", secret, source)
		}
		u, all := tok.Unverified(), tok.Issuers()
		if u.Issuer != "" && !slices.Contains(all, u.Issuer) {
			t.Errorf("the issuer %q is none of %q", u.Issuer, all)
		}
	})
}
