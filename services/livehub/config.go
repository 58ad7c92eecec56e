package livehub

import (
	"errors"
	"fmt"
	"time"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/renewal"
	"hangar.io/glidepath/internal/streamquota"
	"hangar.io/glidepath/internal/telemetry"
)

// Config is the configuration of the process: each field is a flag and an
// environment variable.
type Config struct {
	Listen        string `env:"LISTEN" default:":8080" placeholder:"ADDRESS" help:"Where the edge reaches this backend, and the probes /healthz and /readyz."`
	MetricsListen string `env:"METRICS_LISTEN" default:":9090" placeholder:"ADDRESS" help:"Where /metrics is served, and nothing else."`

	Kubeconfig      string        `env:"KUBECONFIG" placeholder:"FILE" help:"How to reach the API server. Empty: as this pod's ServiceAccount."`
	IdentityKeysDir string        `env:"IDENTITY_KEYS_DIR" placeholder:"DIR" help:"Public keys (*.pem) of those whose identities are taken."`
	SealKey         string        `env:"SEAL_KEY_FILE" placeholder:"FILE" help:"Keys, 32 bytes each as a line of base64, that close what is kept in Redis and in continue tokens. The first one closes, all open. The same on every replica."`
	Redis           cache.Options `embed:""`

	ListTime   time.Duration `env:"LIVE_LIST_TIME" default:"30s" help:"How long reading one list may take, 90s at most."`
	ListBytes  int64         `env:"LIVE_LIST_BYTES" default:"268435456" help:"How large one list may be, in bytes, as the API server sends it."`
	Lists      int           `env:"LIVE_LISTS" default:"8" help:"How many lists are read at once."`
	Wait       time.Duration `env:"LIVE_WAIT" default:"10s" help:"How long a call waits for a list. Less than the edge waits for this backend."`
	CacheBytes int64         `env:"LIVE_CACHE_BYTES" default:"134217728" help:"How much of what was read is kept in memory, in bytes."`

	MaxStreams int `name:"live-max-streams" env:"LIVE_MAX_STREAMS" default:"200" help:"How many live streams this replica serves at once."`

	Renewal renewal.Options    `embed:""`
	Streams streamquota.Limits `embed:""`

	MaxLogs  int           `env:"LIVE_MAX_LOGS" default:"100" help:"How many logs this replica sends at once."`
	LogStall time.Duration `env:"LIVE_LOG_STALL" default:"30s" help:"How long a caller may take nothing of a log, or nothing may come of one that is not followed."`

	telemetry.TraceConfig
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
	if err := c.Renewal.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("--authz-renew-url: %w", err))
	}
	faults = append(faults, c.Redis.Validate(), c.Streams.Validate(), c.checkShares())
	if c.ListTime <= 0 || c.ListTime > cache.MaxFillTime {
		faults = append(faults, fmt.Errorf("--list-time is %s, not more than 0 and at most %s", c.ListTime, cache.MaxFillTime))
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"list-bytes", c.ListBytes},
		{"lists", int64(c.Lists)},
		{"wait", int64(c.Wait)},
		{"cache-bytes", c.CacheBytes},
		{"max-logs", int64(c.MaxLogs)},
		{"log-stall", int64(c.LogStall)},
		{"live-max-streams", int64(c.MaxStreams)},
	} {
		if f.value <= 0 {
			faults = append(faults, fmt.Errorf("--%s is not more than 0", f.name))
		}
	}
	return errors.Join(faults...)
}

// checkShares keeps one caller from filling a replica: its quota is at most half
// of what the replica has.
func (c Config) checkShares() error {
	var faults []error
	for _, all := range []struct {
		name  string
		value int
	}{{"max-logs", c.MaxLogs}, {"live-max-streams", c.MaxStreams}} {
		if c.Streams.Caller > all.value/2 {
			faults = append(faults, fmt.Errorf("--streams-per-caller is %d, more than half of --%s, %d", c.Streams.Caller, all.name, all.value))
		}
	}
	return errors.Join(faults...)
}
