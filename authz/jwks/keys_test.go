package jwks_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/jwks"
	"hangar.io/glidepath/authz/token"
)

// holding runs a set of these keys.
func holding(t testing.TB, keys ...jose.JSONWebKey) *jwks.Set {
	t.Helper()
	return start(t, &server{body: set(t, keys...)}, nil)
}

func TestEveryAlgorithmThatIsAccepted(t *testing.T) {
	for _, alg := range []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"} {
		t.Run(alg, func(t *testing.T) {
			p := newPair(t, "k", alg)
			named, free := p.public(), p.public()
			free.Algorithm, free.Use = "", ""
			verdict(t, holding(t, named), p, nil)
			verdict(t, holding(t, free), p, nil)
		})
	}
}

func TestAKeyIsUsedForWhatItIsAlone(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	rs := newPair(t, "k", "RS256")
	as := func(alg string) pair { return pair{kid: "k", alg: alg, private: rs.private} }
	large := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 4096, 1), E: 65537}
	change := func(change func(*jose.JSONWebKey)) jose.JSONWebKey {
		k := rs.public()
		change(&k)
		return k
	}
	for name, tc := range map[string]struct {
		key    jose.JSONWebKey
		signer pair
		want   error
	}{
		"another algorithm of the same kind":     {rs.public(), as("RS384"), jwks.ErrSignature},
		"another padding":                        {rs.public(), as("PS256"), jwks.ErrSignature},
		"a key of any algorithm takes both":      {change(func(k *jose.JSONWebKey) { k.Algorithm = "" }), as("PS512"), nil},
		"a key for encryption":                   {change(func(k *jose.JSONWebKey) { k.Use = "enc" }), rs, jwks.ErrUnknownKey},
		"a key whose algorithm is none":          {change(func(k *jose.JSONWebKey) { k.Algorithm = "none" }), rs, jwks.ErrUnknownKey},
		"a key whose algorithm is not its kind":  {change(func(k *jose.JSONWebKey) { k.Algorithm = "ES256" }), rs, jwks.ErrUnknownKey},
		"a key without a name":                   {change(func(k *jose.JSONWebKey) { k.KeyID = "" }), rs, jwks.ErrUnknownKey},
		"a private key that was published":       {change(func(k *jose.JSONWebKey) { k.Key = rs.private }), rs, jwks.ErrUnknownKey},
		"a key of another size than its name's":  {newPair(t, "k", "ES384").public(), newPair(t, "k", "ES256"), jwks.ErrSignature},
		"an RSA key that is too small":           {jose.JSONWebKey{Key: weak.Public(), KeyID: "k"}, pair{kid: "k", alg: "RS256", private: weak}, jwks.ErrUnknownKey},
		"an RSA key that is too large":           {jose.JSONWebKey{Key: large, KeyID: "k"}, pair{kid: "k", alg: "RS256", private: rs.private}, jwks.ErrUnknownKey},
		"a secret that was published":            {jose.JSONWebKey{Key: []byte("secret"), KeyID: "k"}, rs, jwks.ErrUnknownKey},
		"another key of the same name and kind ": {newPair(t, "k", "RS256").public(), rs, jwks.ErrSignature},
	} {
		t.Run(name, func(t *testing.T) {
			verdict(t, holding(t, newPair(t, "good", "ES256").public(), tc.key), tc.signer, tc.want)
		})
	}
}

func TestOneBadKeyLeavesTheOthers(t *testing.T) {
	good := newPair(t, "good", "ES256")
	raw, err := json.Marshal(good.public())
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"a kind that nobody knows":      `{"kty":"AKP","kid":"x","alg":"ML-DSA-65","pub":"AAAA"}`,
		"a point that is on no curve":   `{"kty":"EC","kid":"x","crv":"P-256","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","y":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE"}`,
		"no object":                     `"x"`,
		"a name twice":                  `{"kty":"RSA","kid":"x","kid":"good"}`,
		"a key for signing, in a list ": `{"kty":"EC","kid":"x","key_ops":["sign"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(`{"keys":[` + bad + `,` + string(raw) + `]}`)
			keys := start(t, &server{body: body}, nil)
			if name == "a name twice" {
				// What two readers would read differently is read by none.
				verdict(t, keys, good, jwks.ErrNoKeys)
				return
			}
			verdict(t, keys, good, nil)
			verdict(t, keys, newPair(t, "x", "ES256"), jwks.ErrUnknownKey)
		})
	}
}

func TestKeyOperationsCount(t *testing.T) {
	p := newPair(t, "k", "ES256")
	for ops, want := range map[string]error{`["verify"]`: nil, `["sign","verify"]`: nil, `["sign"]`: jwks.ErrUnknownKey, `[]`: jwks.ErrUnknownKey} {
		raw, err := json.Marshal(p.public())
		if err != nil {
			t.Fatal(err)
		}
		body := `{"keys":[` + strings.TrimSuffix(string(raw), "}") + `,"key_ops":` + ops + `}]}`
		verdict(t, start(t, &server{body: []byte(body)}, nil), p, want)
	}
}

func TestTwoKeysMayShareAName(t *testing.T) {
	a, b := newPair(t, "k", "ES256"), newPair(t, "k", "ES256")
	keys := holding(t, a.public(), b.public())
	verdict(t, keys, a, nil)
	verdict(t, keys, b, nil)
}

func TestFormsOfTokensThatAreNotAccepted(t *testing.T) {
	good := newPair(t, "k", "ES256")
	keys := holding(t, good.public())
	verdict(t, keys, good, nil)
	header := func(name string, value any) token.Token {
		return good.sign(t, func(h map[string]any) { h[name] = value })
	}
	plain := good.sign(t, nil).Secret()
	head, rest, _ := strings.Cut(plain, ".")
	encode := base64.RawURLEncoding.EncodeToString
	unsigned, err := jwt.New(jwt.SigningMethodNone).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	for name, tok := range map[string]token.Token{
		"an algorithm of none":               bearer(t, unsigned+"AA"),
		"no algorithm":                       bearer(t, encode([]byte(`{"kid":"k"}`))+"."+rest),
		"an algorithm in small letters":      bearer(t, encode([]byte(`{"alg":"es256","kid":"k"}`))+"."+rest),
		"a symmetric algorithm":              bearer(t, encode([]byte(`{"alg":"HS256","kid":"k"}`))+"."+rest),
		"two algorithms":                     bearer(t, encode([]byte(`{"alg":"ES256","alg":"none","kid":"k"}`))+"."+rest),
		"no name of a key":                   header("kid", ""),
		"a name of a key that is no text":    header("kid", 1),
		"something critical":                 header("crit", []string{"exp"}),
		"nothing critical, but said so":      header("crit", []string{}),
		"a token in a token":                 header("cty", "JWT"),
		"a compressed one":                   header("zip", "DEF"),
		"an access token":                    header("typ", "at+jwt"),
		"padding":                            bearer(t, plain+"="),
		"one part":                           bearer(t, head),
		"two parts":                          bearer(t, head+".e30"),
		"four parts":                         bearer(t, plain+".x"),
		"an empty signature":                 bearer(t, plain[:strings.LastIndex(plain, ".")+1]),
		"a signature that is cut":            bearer(t, plain[:len(plain)-4]),
		"another payload under the same one": bearer(t, head+"."+encode([]byte(`{"sub":"al"}`))+plain[strings.LastIndex(plain, "."):]),
	} {
		t.Run(name, func(t *testing.T) {
			payload, err := keys.Verify(t.Context(), tok, authn.ForWrite, jwks.FetchTimeout)
			if !errors.Is(err, jwks.ErrSignature) || payload != nil {
				t.Errorf("got %q, %v", payload, err)
			}
			if err != nil && strings.Contains(err.Error(), tok.Secret()) {
				t.Errorf("the error repeats the token: %v", err)
			}
		})
	}
}

func FuzzVerify(f *testing.F) {
	good := newPair(f, "k", "EdDSA")
	keys := holding(f, good.public())
	tok := good.sign(f, nil).Secret()
	for _, s := range []string{tok, tok + "=", "a.b.c", "..", tok[1:]} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sentAs, err := token.FromHeaders(sent(s))
		if err != nil {
			return
		}
		payload, err := keys.Verify(t.Context(), sentAs, authn.ForWrite, jwks.FetchTimeout)
		if err == nil && string(payload) != `{"sub":"jo"}` {
			t.Errorf("%q was taken", s)
		}
	})
}

func FuzzKeys(f *testing.F) {
	f.Add(set(f, newPair(f, "k", "ES256").public(), newPair(f, "l", "EdDSA").public()))
	f.Add([]byte(`{"keys":[]}`))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA","kid":"k"}]}`))
	stranger := newPair(f, "k", "ES256")
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := start(t, &server{body: body}, nil).Verify(t.Context(), stranger.sign(t, nil), authn.ForWrite, jwks.FetchTimeout); err == nil {
			t.Errorf("a stranger's token was taken with %q", body)
		}
	})
}
