package authz

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"hangar.io/glidepath/authz/edgemetrics"
	"hangar.io/glidepath/authz/oidc"
	"hangar.io/glidepath/authz/renewals"
	"hangar.io/glidepath/internal/telemetry"
)

// Config is what the process is told, by flags or by the environment. It holds
// no secret: the signing key is a file.
type Config struct {
	Socket          string   `env:"AUTHZ_SOCKET" placeholder:"PATH" help:"Unix socket that Envoy asks for decisions."`
	HTTPSocket      string   `name:"http-socket" env:"AUTHZ_HTTP_SOCKET" placeholder:"PATH" help:"Unix socket that answers whoami and getContract."`
	Kubeconfig      string   `env:"KUBECONFIG" placeholder:"FILE" help:"How to reach the API server. Empty means the pod's ServiceAccount."`
	TokenAudiences  []string `env:"TOKEN_AUDIENCES" placeholder:"NAME" help:"Audiences of which a token must have one. Empty means the API server's own."`
	Delegates       []string `env:"DELEGATES" placeholder:"USER" help:"User names that may act on behalf of a person."`
	IdentityKey     string   `env:"IDENTITY_KEY_FILE" placeholder:"FILE" help:"Private key that signs identities: Ed25519, PKCS #8, PEM."`
	IdentityKeysDir string   `env:"IDENTITY_KEYS_DIR" placeholder:"DIR" help:"Folder of the public keys, this process's own among them."`
	EnvoyAdmin      string   `env:"ENVOY_ADMIN" placeholder:"URL" help:"Envoy's admin interface, unix:///path or http://127.0.0.1:port. Empty means that the metrics of calls are not served."`
	DenyList        string   `env:"DENY_LIST_FILE" placeholder:"FILE" help:"Users, people and groups that may do nothing for now, YAML, watched for changes."`
	MetricsListen   string   `env:"METRICS_LISTEN" default:":9090" help:"Address of the metrics."`
	ProbeListen     string   `env:"PROBE_LISTEN" default:":8081" help:"Address of the probes, /healthz and /readyz."`

	OIDC     oidc.Settings    `embed:""`
	Renewals renewals.Options `embed:""`

	telemetry.TraceConfig
}

// maxSocketPath is what fits into a socket address everywhere.
const maxSocketPath = 100

// Validate checks everything that can be checked before the process starts, and
// gives all faults together.
func (c *Config) Validate() error {
	faults := []error{
		checkSocket("--socket", c.Socket),
		checkSocket("--http-socket", c.HTTPSocket),
		checkPath("--identity-key", c.IdentityKey),
		checkPath("--identity-keys-dir", c.IdentityKeysDir),
		checkListen("--metrics-listen", c.MetricsListen),
		checkListen("--probe-listen", c.ProbeListen),
		c.OIDC.Validate(),
		c.Renewals.Validate(),
		c.TraceConfig.Validate(),
	}
	if c.DenyList != "" {
		faults = append(faults, checkPath("--deny-list", c.DenyList))
	}
	if c.Socket != "" && c.Socket == c.HTTPSocket {
		faults = append(faults, errors.New("--socket and --http-socket: the same path"))
	}
	if c.Kubeconfig != "" {
		faults = append(faults, checkPath("--kubeconfig", c.Kubeconfig))
	}
	if c.EnvoyAdmin != "" {
		if err := edgemetrics.CheckAddress(c.EnvoyAdmin); err != nil {
			faults = append(faults, fmt.Errorf("--envoy-admin: %w", err))
		}
	}
	for flag, names := range map[string][]string{"--delegates": c.Delegates, "--token-audiences": c.TokenAudiences} {
		for _, n := range names {
			if n == "" || n != strings.TrimSpace(n) {
				faults = append(faults, fmt.Errorf("%s: %q is empty or has spaces around it", flag, n))
			}
		}
	}
	return errors.Join(faults...)
}

func checkSocket(flag, path string) error {
	switch {
	case path == "":
		return fmt.Errorf("%s: missing", flag)
	case !filepath.IsAbs(path):
		return fmt.Errorf("%s: %q is not an absolute path", flag, path)
	case len(path) >= maxSocketPath:
		return fmt.Errorf("%s: %d bytes, and a socket's path has fewer than %d", flag, len(path), maxSocketPath)
	}
	return nil
}

func checkPath(flag, path string) error {
	if path == "" {
		return fmt.Errorf("%s: missing", flag)
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

func checkListen(flag, addr string) error {
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return fmt.Errorf("%s: %q is not host:port", flag, addr)
	}
	return nil
}
