package oidc_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
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

// sharedCase reads a file of the shared cases.
func sharedCase(t *testing.T, path ...string) []byte {
	t.Helper()
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES names no folder of shared cases")
	}
	raw, err := os.ReadFile(filepath.Join(append([]string{cases}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// document is a source of keys that is always there.
type document []byte

func (d document) Fetch(context.Context) ([]byte, error) { return d, nil }

// The vectors' tokens name no login, so one whose every other claim is good is
// refused for that alone.
const lacksLogin = "preferred_username"

// rule: R059, R060, R061
func TestTheSharedAttacksOnTokens(t *testing.T) {
	var vectors []struct {
		Name, Expected string
		Token          *string
	}
	if err := json.Unmarshal(sharedCase(t, "http", "jwt", "vectors.json"), &vectors); err != nil {
		t.Fatal(err)
	}
	set := sharedCase(t, "http", "jwt", "jwks.json")
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(1787400000, 0))) // when the vectors were made
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		keys := jwks.New(jwks.Config{Name: "vectors", Source: document(set)})
		go keys.Run(ctx)
		allowed, err := oidc.NewAllowed([]string{"jo"})
		if err != nil {
			t.Fatal(err)
		}
		a, err := oidc.New(oidc.Config{
			Issuer: "https://issuer.example", Audience: "cicd-api", Allowed: allowed, Keys: keys, Metrics: prometheus.NewRegistry(),
		})
		if err != nil {
			t.Fatal(err)
		}
		accepted := 0
		for _, v := range vectors {
			if v.Token == nil {
				continue // one that is too long to be written down, as the length of a token is checked elsewhere
			}
			good := accepts(t, a, *v.Token)
			if good {
				accepted++
			}
			switch {
			case v.Expected == "either", v.Expected == "accept_but_header_safe":
			case strings.HasPrefix(v.Expected, "accept"), v.Expected == "reject_or_ignore":
				if !good {
					t.Errorf("%s: refused", v.Name)
				}
			case good:
				t.Errorf("%s: accepted", v.Name)
			}
		}
		if accepted < 8 {
			t.Errorf("only %d of %d were accepted", accepted, len(vectors))
		}
	})
}

func accepts(t *testing.T, a *oidc.Authenticator, s string) bool {
	t.Helper()
	tok, err := token.FromHeaders(sent(s))
	if err != nil {
		return false
	}
	c, err := a.Authenticate(t.Context(), tok, authn.ForWrite)
	if c != nil {
		t.Errorf("%q is somebody's: %+v", s, c)
	}
	answer := problem.From(err)
	if answer.Rule.ID != "GP-AUTH-002" {
		t.Errorf("%q: %v", s, err)
	}
	return strings.Contains(answer.Message, lacksLogin)
}

// rule: R062, R064
func TestWhatTheRealDexPutsIntoAToken(t *testing.T) {
	var answers map[string]json.RawMessage
	if err := json.Unmarshal(sharedCase(t, "dex", "answers.json"), &answers); err != nil {
		t.Fatal(err)
	}
	var real jwt.MapClaims
	if err := json.Unmarshal(answers["ID token claims (scopes openid profile email groups federated:id)"], &real); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	real["iat"], real["exp"] = now, now+3600
	list, err := oidc.NewAllowed([]string{"jo-hub:id=42"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := oidc.New(oidc.Config{
		Issuer: real["iss"].(string), Audience: real["aud"].(string), Allowed: list, Keys: &keys{}, Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Authenticate(t.Context(), idToken(t, real), authn.ForRead)
	if err != nil || c.Username != "people:jo-hub" || c.UID != real["sub"] {
		t.Errorf("got %+v, %v", c, err)
	}
	delete(real, "preferred_username") // as without the scope profile
	if _, err := a.Authenticate(t.Context(), idToken(t, real), authn.ForRead); problem.From(err).Rule.ID != "GP-AUTH-002" {
		t.Errorf("without a login: %v", err)
	}
}
