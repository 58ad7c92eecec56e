package runs

import (
	"bytes"
	"fmt"
	"net/http"
	"os"

	"hangar.io/glidepath/internal/outbound"
	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/services/runs/results"
)

// openArchive gives the client of Tekton Results.
func openArchive(cfg Config, tracing *telemetry.Tracing) (*results.Client, error) {
	source, err := outbound.NewSource("Tekton Results", cfg.ResultsTLS)
	if err != nil {
		return nil, err
	}
	proxies, err := outbound.ProxiesFromEnvironment()
	if err != nil {
		return nil, fmt.Errorf("configuring Tekton Results: %w", err)
	}
	name := func(*http.Request) string { return "read results" }
	c := results.Config{URL: cfg.ResultsURL, Transport: tracing.Transport(source.Transport(proxies, outbound.Bounds{}), name)}
	if file := cfg.ResultsTokenFile; file != "" {
		c.Token = func() (string, error) { return readToken(file) }
	}
	return results.New(c)
}

// readToken reads a token that whoever mounts it may renew at any time.
func readToken(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the token for Tekton Results: %w", err)
	}
	return string(bytes.TrimSpace(raw)), nil
}
