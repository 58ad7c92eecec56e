package runs

import (
	"errors"
	"fmt"
	"time"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/outbound"
	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/services/runs/results"
	"hangar.io/glidepath/services/runs/testkube"
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

	TestkubeURL string           `env:"TESTKUBE_URL" default:"http://testkube-api-server.testkube:8088" placeholder:"URL" help:"Where Testkube's API server is, http://host:port or https://host:port, with a path where a relay has one."`
	TestkubeTLS outbound.Options `embed:"" prefix:"testkube-" envprefix:"TESTKUBE_"`

	SealKey    string        `env:"SEAL_KEY_FILE" placeholder:"FILE" help:"Keys, 32 bytes each as a line of base64, that close what is kept in Redis. The first one closes, all open. The same on every replica."`
	Redis      cache.Options `embed:""`
	CacheBytes int64         `env:"RUNS_CACHE_BYTES" default:"41943040" help:"How much of what was read is kept in memory, in bytes as compressed."`
	PlainBytes int           `env:"RUNS_PLAIN_BYTES" default:"16777216" help:"How much is kept uncompressed besides, for callers who do not take gzip, in bytes."`
	SendBytes  int64         `env:"RUNS_SEND_BYTES" default:"100663296" help:"How much answers may hold until their callers have taken them, in bytes as compressed, 80 MiB at least. One caller's may hold half."`
	FillTime   time.Duration `env:"RUNS_FILL_TIME" default:"90s" help:"How long reading what is not kept may take, 90s at most. It goes on when its caller has left."`
	Warm       bool          `env:"RUNS_WARM" default:"true" negatable:"" help:"Read every app's last 7 days after a start."`

	Wait time.Duration `env:"RUNS_WAIT" default:"10s" help:"How long a call waits for what it asks for. Less than the edge waits for this backend."`

	telemetry.TraceConfig
}

// minSendBytes lets each caller have the largest report, and what it is written in.
const minSendBytes = 2 * (testkube.MaxReportBytes + 8<<20)

// MemoryLimit is how many bytes the process should stay within: what it keeps, what
// its reads and its answers may hold, and 32 MiB for all else.
func (c Config) MemoryLimit() int64 {
	return c.CacheBytes + int64(c.PlainBytes) + c.SendBytes + allListBytes + runsBytes + warmBytes + 32<<20
}

// Validate says all that is wrong with a configuration. It reads no file.
func (c Config) Validate() error {
	faults := []error{c.TraceConfig.Validate()}
	for _, f := range []struct{ name, value string }{
		{"listen", c.Listen},
		{"metrics-listen", c.MetricsListen},
		{"identity-keys-dir", c.IdentityKeysDir},
		{"seal-key", c.SealKey},
	} {
		if f.value == "" {
			faults = append(faults, fmt.Errorf("--%s is missing", f.name))
		}
	}
	if _, err := results.CheckURL(c.ResultsURL); err != nil {
		faults = append(faults, fmt.Errorf("--results-url: %w", err))
	}
	if err := c.ResultsTLS.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("the TLS of --results-url: %w", err))
	}
	if _, err := testkube.ParseURL(c.TestkubeURL); err != nil {
		faults = append(faults, fmt.Errorf("--testkube-url: %w", err))
	}
	if err := c.TestkubeTLS.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("the TLS of --testkube-url: %w", err))
	}
	if c.Wait <= 0 {
		faults = append(faults, errors.New("--wait is not more than 0"))
	}
	return errors.Join(append(faults, c.checkCache())...)
}

func (c Config) checkCache() error {
	faults := []error{c.Redis.Validate()}
	if c.FillTime <= 0 || c.FillTime > cache.MaxFillTime {
		faults = append(faults, fmt.Errorf("--fill-time is %s, not more than 0 and at most %s", c.FillTime, cache.MaxFillTime))
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"cache-bytes", c.CacheBytes}, {"plain-bytes", int64(c.PlainBytes)}} {
		if f.value <= 0 {
			faults = append(faults, fmt.Errorf("--%s is not more than 0", f.name))
		}
	}
	if c.SendBytes < minSendBytes {
		faults = append(faults, fmt.Errorf("--send-bytes is %d, not %d at least", c.SendBytes, minSendBytes))
	}
	return errors.Join(faults...)
}
