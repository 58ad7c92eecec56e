package telemetry

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// TraceConfig is what a process is told about its traces. The tags are those of
// kong: a process embeds the struct, and has the flags and the environment.
type TraceConfig struct {
	OTLPEndpoint string  `name:"otlp-endpoint" env:"OTEL_EXPORTER_OTLP_ENDPOINT" placeholder:"URL" help:"OTLP/HTTP collector that gets the spans, as http://host:4318. Empty exports nothing; traces are passed on all the same."`
	OTLPCAFile   string  `name:"otlp-ca-file" env:"OTEL_EXPORTER_OTLP_CERTIFICATE" placeholder:"FILE" help:"Authorities, PEM, of which one must have signed the certificate of an https collector. Read again when it changes. Empty: the system's."`
	TraceRatio   float64 `name:"trace-ratio" env:"TRACE_SAMPLE_RATIO" default:"1" help:"Share of the traces that begin here to sample, 0 to 1. A caller's own decision always wins."`
}

// Validate reports every fault of c together. It shows nothing of the endpoint,
// which may hold a credential by mistake.
func (c TraceConfig) Validate() error {
	var faults []error
	if c.OTLPEndpoint != "" {
		if _, err := tracesURL(c.OTLPEndpoint); err != nil {
			faults = append(faults, err)
		}
	}
	if c.OTLPCAFile != "" && !strings.HasPrefix(c.OTLPEndpoint, "https://") {
		faults = append(faults, errors.New("--otlp-ca-file: the collector is not https"))
	}
	if !(c.TraceRatio >= 0 && c.TraceRatio <= 1) { // so that NaN is refused too
		faults = append(faults, fmt.Errorf("--trace-ratio: %v is not between 0 and 1", c.TraceRatio))
	}
	return errors.Join(faults...)
}

// tracesURL gives where spans go: a path below the endpoint (OTLP/HTTP, default
// URL paths).
func tracesURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", errors.New("--otlp-endpoint: not a plain http://host:port or https://host:port")
	}
	if u.Port() == "" && u.Scheme == "http" {
		u.Host += ":4318"
	}
	return u.JoinPath("v1", "traces").String(), nil
}
