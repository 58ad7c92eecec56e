package runs

import (
	"errors"
	"fmt"
	"time"

	"hangar.io/glidepath/internal/outbound"
	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/services/runs/results"
)

// Config is the configuration of the process: each field is a flag and an
// environment variable.
type Config struct {
	Listen        string `env:"LISTEN" default:":8080" placeholder:"ADDRESS" help:"Where the edge reaches this backend, and the probes /healthz and /readyz."`
	MetricsListen string `env:"METRICS_LISTEN" default:":9090" placeholder:"ADDRESS" help:"Where /metrics is served, and nothing else."`

	Kubeconfig      string `env:"KUBECONFIG" placeholder:"FILE" help:"How to reach the API server. Empty: as this pod's ServiceAccount."`
	IdentityKeysDir string `env:"IDENTITY_KEYS_DIR" placeholder:"DIR" help:"Public keys (*.pem) of those whose identities are taken."`

	ResultsURL       string           `env:"RESULTS_URL" placeholder:"URL" help:"Where the relay of Tekton Results is, http://host:port or https://host:port, with a path where one stands before Results' own."`
	ResultsTokenFile string           `env:"RESULTS_TOKEN_FILE" placeholder:"FILE" help:"Token of this process for that address, read for each request. Empty: none is sent, since the relay has its own. A caller's is never sent."`
	ResultsTLS       outbound.Options `embed:"" prefix:"results-" envprefix:"RESULTS_"`

	Wait time.Duration `env:"RUNS_WAIT" default:"10s" help:"How long a call waits for what it asks for. Less than the edge waits for this backend."`

	telemetry.TraceConfig
}

// Validate says all that is wrong with a configuration. It reads no file.
func (c Config) Validate() error {
	faults := []error{c.TraceConfig.Validate()}
	for _, f := range []struct{ name, value string }{
		{"listen", c.Listen},
		{"metrics-listen", c.MetricsListen},
		{"identity-keys-dir", c.IdentityKeysDir},
	} {
		if f.value == "" {
			faults = append(faults, fmt.Errorf("--%s is missing", f.name))
		}
	}
	if _, err := results.CheckURL(c.ResultsURL); err != nil {
		faults = append(faults, fmt.Errorf("--results-url: %w", err))
	}
	if err := c.ResultsTLS.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("--results-: %w", err))
	}
	if c.Wait <= 0 {
		faults = append(faults, errors.New("--wait is not more than 0"))
	}
	return errors.Join(faults...)
}
