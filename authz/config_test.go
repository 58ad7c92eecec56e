package authz_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/authz"
	"hangar.io/glidepath/authz/oidc"
)

// sound gives a configuration without a fault.
func sound(t *testing.T) authz.Config {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "key.pem")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return authz.Config{
		Socket: "/run/authz.sock", HTTPSocket: "/run/authz-http.sock", IdentityKey: key, IdentityKeysDir: dir,
		EnvoyAdmin: "unix:///run/admin.sock", MetricsListen: ":9090", ProbeListen: ":8081",
		Delegates: []string{"tower"}, TokenAudiences: []string{"glidepath"},
		OIDC: oidc.Settings{Issuer: "https://dex.example/dex", Audience: "glidepath-api", AllowedUsers: []string{"jo", "al:id=42"}},
	}
}

func TestASoundConfigurationHasNoFault(t *testing.T) {
	c := sound(t)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.EnvoyAdmin, c.Delegates, c.TokenAudiences, c.OIDC = "", nil, nil, oidc.Settings{}
	if err := c.Validate(); err != nil {
		t.Errorf("with nothing that may be left out: %v", err)
	}
}

func TestEachFaultOfAConfigurationIsToldByItsFlag(t *testing.T) {
	for name, tc := range map[string]struct {
		breakIt func(*authz.Config)
		flag    string
	}{
		"no socket":                      {func(c *authz.Config) { c.Socket = "" }, "--socket"},
		"a relative socket":              {func(c *authz.Config) { c.Socket = "authz.sock" }, "--socket"},
		"a socket with too long a path":  {func(c *authz.Config) { c.Socket = "/" + strings.Repeat("a", 100) }, "--socket"},
		"no HTTP socket":                 {func(c *authz.Config) { c.HTTPSocket = "" }, "--http-socket"},
		"one path for two sockets":       {func(c *authz.Config) { c.HTTPSocket = c.Socket }, "--http-socket"},
		"no key":                         {func(c *authz.Config) { c.IdentityKey = "" }, "--identity-key"},
		"a key that is not there":        {func(c *authz.Config) { c.IdentityKey = "/nowhere" }, "--identity-key"},
		"no public keys":                 {func(c *authz.Config) { c.IdentityKeysDir = "/nowhere" }, "--identity-keys-dir"},
		"a kubeconfig that is not there": {func(c *authz.Config) { c.Kubeconfig = "/nowhere" }, "--kubeconfig"},
		"an admin interface on the net":  {func(c *authz.Config) { c.EnvoyAdmin = "http://10.0.0.1:1" }, "--envoy-admin"},
		"metrics on no port":             {func(c *authz.Config) { c.MetricsListen = "0.0.0.0" }, "--metrics-listen"},
		"probes on nothing":              {func(c *authz.Config) { c.ProbeListen = "" }, "--probe-listen"},
		"a delegate without a name":      {func(c *authz.Config) { c.Delegates = []string{"a", ""} }, "--delegates"},
		"an audience with a space":       {func(c *authz.Config) { c.TokenAudiences = []string{" a"} }, "--token-audiences"},
		"people of no issuer":            {func(c *authz.Config) { c.OIDC.Issuer = "" }, "--oidc-issuer"},
		"keys of no issuer":              {func(c *authz.Config) { c.OIDC = oidc.Settings{JWKSURL: "https://dex.example"} }, "--oidc-issuer"},
		"an issuer that is no URL":       {func(c *authz.Config) { c.OIDC.Issuer = "dex" }, "--oidc-issuer"},
		"an issuer with a query":         {func(c *authz.Config) { c.OIDC.Issuer += "?a=b" }, "--oidc-issuer"},
		"keys in a file":                 {func(c *authz.Config) { c.OIDC.JWKSURL = "file:///etc/keys" }, "--oidc-jwks-url"},
		"people of any client":           {func(c *authz.Config) { c.OIDC.Audience = "" }, "--oidc-audience"},
		"anyone who signs in":            {func(c *authz.Config) { c.OIDC.AllowedUsers = nil }, "--oidc-allowed-users"},
		"two people who are none":        {func(c *authz.Config) { c.OIDC.AllowedUsers = []string{"*", ""} }, "--oidc-allowed-users"},
		"half a client certificate":      {func(c *authz.Config) { c.OIDC.Server.CertFile = "/a" }, "--oidc-cert-file"},
		"authorities for keys in the clear": {func(c *authz.Config) {
			c.OIDC.Server.CAFile, c.OIDC.JWKSURL = "/a", "http://dex.dex.svc:5556/dex/keys"
		}, "--oidc-ca-file"},
	} {
		t.Run(name, func(t *testing.T) {
			c := sound(t)
			tc.breakIt(&c)
			err := c.Validate()
			if err == nil || !strings.Contains(err.Error(), tc.flag) || strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAllFaultsAreToldTogether(t *testing.T) {
	var c authz.Config
	err := c.Validate()
	if err == nil {
		t.Fatal("an empty configuration has no fault")
	}
	for _, flag := range []string{"--socket", "--http-socket", "--identity-key", "--identity-keys-dir", "--metrics-listen", "--probe-listen"} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not in %v", flag, err)
		}
	}
}

func TestTheConfigurationIsReadFromFlagsAndTheEnvironment(t *testing.T) {
	want := sound(t)
	for name, value := range map[string]string{
		"AUTHZ_SOCKET": "/run/other.sock", "AUTHZ_HTTP_SOCKET": want.HTTPSocket, "IDENTITY_KEY_FILE": want.IdentityKey,
		"IDENTITY_KEYS_DIR": want.IdentityKeysDir, "DELEGATES": "tower,system:serviceaccount:a:b", "TOKEN_AUDIENCES": "",
		"OIDC_ISSUER": want.OIDC.Issuer, "OIDC_AUDIENCE": want.OIDC.Audience, "OIDC_ALLOWED_USERS": "jo,al:id=42", "OIDC_CA_FILE": "/ca.pem",
		"OIDC_JWKS_URL": "https://dex.example/dex/keys",
		"ENVOY_ADMIN":   want.EnvoyAdmin, "KUBECONFIG": "", "METRICS_LISTEN": ":1", "PROBE_LISTEN": ":2",
	} {
		t.Setenv(name, value)
	}
	var c authz.Config
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"--socket=/run/authz.sock"}); err != nil {
		t.Fatal(err)
	}
	if c.Socket != want.Socket || c.HTTPSocket != want.HTTPSocket || c.MetricsListen != ":1" || c.ProbeListen != ":2" {
		t.Errorf("got %+v", c)
	}
	if !slices.Equal(c.Delegates, []string{"tower", "system:serviceaccount:a:b"}) || len(c.TokenAudiences) != 0 || c.Kubeconfig != "" {
		t.Errorf("got %+v", c)
	}
	if c.OIDC.Issuer != want.OIDC.Issuer || c.OIDC.Audience != want.OIDC.Audience || !slices.Equal(c.OIDC.AllowedUsers, want.OIDC.AllowedUsers) ||
		c.OIDC.Server.CAFile != "/ca.pem" || c.OIDC.JWKSURL != "https://dex.example/dex/keys" {
		t.Errorf("got %+v", c.OIDC)
	}
	t.Setenv("AUTHZ_HTTP_SOCKET", "relative")
	if _, err := parser.Parse([]string{"--socket=/run/authz.sock"}); err == nil {
		t.Error("a faulty configuration was taken")
	}
}
