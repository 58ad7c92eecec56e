package runs

import (
	"bytes"
	"fmt"
	"net/http"
	"os"

	"hangar.io/glidepath/internal/outbound"
	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/internal/upstream"
	"hangar.io/glidepath/services/runs/results"
	"hangar.io/glidepath/services/runs/testkube"
)

// maxLog bounds a log that is passed on, which takes no memory: whoever wants it
// wants all of it. What is kept or explained of one has bounds of its own.
const maxLog = 4 << 30

// openArchive gives the client of Tekton Results.
func openArchive(cfg Config, tracing *telemetry.Tracing, requests *upstream.Metrics) (*results.Client, error) {
	source, err := outbound.NewSource("Tekton Results", cfg.ResultsTLS)
	if err != nil {
		return nil, err
	}
	proxies, err := outbound.ProxiesFromEnvironment()
	if err != nil {
		return nil, fmt.Errorf("configuring Tekton Results: %w", err)
	}
	name := func(*http.Request) string { return "read results" }
	c := results.Config{
		URL: cfg.ResultsURL, Transport: tracing.Transport(source.Transport(proxies, outbound.Bounds{}), name),
		Metrics: requests, Limits: results.Limits{LogBytes: maxLog},
	}
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

// openTests gives the client of Testkube.
func openTests(cfg Config, tracing *telemetry.Tracing, requests *upstream.Metrics) (*testkube.Client, error) {
	source, err := outbound.NewSource("Testkube", cfg.TestkubeTLS)
	if err != nil {
		return nil, err
	}
	proxies, err := outbound.ProxiesFromEnvironment()
	if err != nil {
		return nil, fmt.Errorf("configuring Testkube: %w", err)
	}
	transport := source.Transport(proxies, outbound.Bounds{Header: cfg.Wait, Connections: testkube.Connections})
	return testkube.New(testkube.Config{
		URL: cfg.TestkubeURL, Transport: tracing.Transport(transport, testkube.SpanName), Metrics: requests,
		// What is left of the wait is for the list itself.
		DetailTime: cfg.Wait / 2, DetailsTime: cfg.Wait * 6 / 10, RequestTime: cfg.Wait, Stall: cfg.Wait / 2,
	})
}
