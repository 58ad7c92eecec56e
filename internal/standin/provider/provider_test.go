package provider_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hangar.io/glidepath/internal/standin/provider"
)

// interval is so long that a second poll is always too fast.
const interval = time.Hour

func start(t *testing.T) *provider.Provider {
	t.Helper()
	p, err := provider.Start(t.Context(), provider.Config{
		Addr: "127.0.0.1:0", Interval: interval, People: []provider.Person{{Login: "jo-hub", Name: "jo", UserID: "42"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// post sends a form and reads the answer's JSON.
func post(t *testing.T, address string, values url.Values) (status int, body map[string]any) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(values.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

func device(t *testing.T, p *provider.Provider, scopes string) (code, userCode string, body map[string]any) {
	t.Helper()
	status, body := post(t, p.Issuer+"/device/code", url.Values{"client_id": {provider.Client}, "scope": {scopes}})
	if status != http.StatusOK {
		t.Fatalf("%d %v", status, body)
	}
	return body["device_code"].(string), body["user_code"].(string), body
}

func poll(t *testing.T, p *provider.Provider, code string) (int, map[string]any) {
	t.Helper()
	return post(t, p.Issuer+"/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {provider.Client}, "device_code": {code},
	})
}

const allScopes = "openid profile email groups federated:id"

func TestTheDeviceFlow(t *testing.T) {
	p := start(t)
	code, userCode, _ := device(t, p, allScopes)
	for _, want := range []string{"authorization_pending", "slow_down"} {
		if status, body := poll(t, p, code); status != http.StatusBadRequest || body["error"] != want {
			t.Errorf("got %d %v, want %s", status, body, want)
		}
	}
	if err := p.Approve(t.Context(), userCode, "jo-hub"); err != nil {
		t.Fatal(err)
	}
	status, body := poll(t, p, code)
	if status != http.StatusOK {
		t.Fatalf("%d %v", status, body)
	}
	var claims jwt.MapClaims
	parsed, _, err := jwt.NewParser().ParseUnverified(body["id_token"].(string), &claims)
	if err != nil {
		t.Fatal(err)
	}
	federated, _ := claims["federated_claims"].(map[string]any)
	if parsed.Header["alg"] != "RS256" || claims["iss"] != p.Issuer || claims["sub"] != "gh-42" || claims["preferred_username"] != "jo-hub" || federated["user_id"] != "42" ||
		claims["exp"].(float64)-claims["iat"].(float64) != provider.TokenLife.Seconds() {
		t.Errorf("got %v %v", parsed.Header, claims)
	}
	if status, _ := poll(t, p, code); status == http.StatusOK {
		t.Error("a device signs in twice")
	}
}

func TestAPersonMayDeny(t *testing.T) {
	p := start(t)
	code, userCode, _ := device(t, p, "openid")
	if err := p.Deny(t.Context(), userCode); err != nil {
		t.Fatal(err)
	}
	if status, body := poll(t, p, code); status != http.StatusBadRequest || body["error"] != "access_denied" {
		t.Errorf("got %d %v", status, body)
	}
}

func TestWithoutTheScopeProfileThereIsNoLogin(t *testing.T) {
	p := start(t)
	code, userCode, _ := device(t, p, "openid")
	if err := p.Approve(t.Context(), userCode, "jo-hub"); err != nil {
		t.Fatal(err)
	}
	_, body := poll(t, p, code)
	var claims jwt.MapClaims
	if _, _, err := jwt.NewParser().ParseUnverified(body["id_token"].(string), &claims); err != nil {
		t.Fatal(err)
	}
	if claims["preferred_username"] != nil || claims["federated_claims"] != nil {
		t.Errorf("got %v", claims)
	}
}

// What a client of the gateway reads of Dex's answers is in this provider's, too.
func TestItAnswersAsTheRealDexDoes(t *testing.T) {
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES names no folder of shared cases")
	}
	read := func(name string, into any) {
		raw, err := os.ReadFile(filepath.Join(cases, "dex", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t)
	var real, ours map[string]any
	read("discovery.json", &real)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Issuer+"/.well-known/openid-configuration", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&ours); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"issuer", "token_endpoint", "jwks_uri", "device_authorization_endpoint"} {
		want := strings.Replace(real[name].(string), real["issuer"].(string), p.Issuer, 1)
		if ours[name] != want {
			t.Errorf("%s is %v, Dex's would be %s", name, ours[name], want)
		}
	}
	var answers map[string]json.RawMessage
	read("answers.json", &answers)
	var asked struct{ Body map[string]any }
	if err := json.Unmarshal(answers["device/code"], &asked); err != nil {
		t.Fatal(err)
	}
	_, _, body := device(t, p, allScopes)
	for name := range asked.Body {
		if body[name] == nil {
			t.Errorf("the device's answer has no %s: %v", name, body)
		}
	}
}
