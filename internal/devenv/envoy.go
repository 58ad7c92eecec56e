package devenv

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"hangar.io/glidepath/envoy"
	"hangar.io/glidepath/internal/devenv/process"
)

// EnvoyConfig says how an Envoy is run. Dir, Bootstrap and Admin are required.
type EnvoyConfig struct {
	Dir         string   // its working directory, log and access log; made when missing
	Bootstrap   string   // the file Envoy is started with
	Admin       string   // path of the socket on which the bootstrap puts the admin interface
	Concurrency int      // worker threads; 0 is one
	Args        []string // further flags
}

// Envoy is a running edge. Several run side by side.
type Envoy struct {
	Process   *process.Process
	AccessLog string // file with what Envoy writes to standard output
	Admin     string // path of the admin interface's socket
}

// StartEnvoy starts an Envoy and returns when it says it is live, which is when it has its first listeners.
func StartEnvoy(ctx context.Context, cfg EnvoyConfig) (*Envoy, error) {
	path, err := Tool("envoy")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("preparing Envoy: %w", err)
	}
	e := &Envoy{AccessLog: filepath.Join(cfg.Dir, "access.log"), Admin: cfg.Admin}
	e.Process, err = process.Start(ctx, process.Spec{
		Name: "envoy", Path: path, Dir: cfg.Dir, Args: append(envoy.Args(cfg.Bootstrap, max(cfg.Concurrency, 1)), cfg.Args...), Log: filepath.Join(cfg.Dir, "envoy.log"), Stdout: e.AccessLog,
		Ready: httpReady("http://envoy/ready", nil, e.transport()),
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Stop ends Envoy.
func (e *Envoy) Stop() { e.Process.Stop() }

// AdminClient talks to the admin interface: its URLs are http://envoy/config_dump and the like. The caller closes its idle
// connections.
func (e *Envoy) AdminClient() *http.Client { return &http.Client{Transport: e.transport()} }

// ValidateEnvoy runs `envoy --mode validate` on a configuration file and returns what Envoy says against it.
func ValidateEnvoy(ctx context.Context, file string) error {
	path, err := Tool("envoy")
	if err != nil {
		return err
	}
	return envoy.Validate(ctx, path, file)
}

func (e *Envoy) transport() *http.Transport {
	var dialer net.Dialer
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", e.Admin)
	}}
}
