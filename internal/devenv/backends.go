package devenv

import (
	"context"
	"path/filepath"
	"strings"

	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/standin/relay"
)

// startBackends starts every replica of every backend.
func (g *Gateway) startBackends(ctx context.Context, ids identityFiles) error {
	redis := []string{"REDIS_CACHE_URL=" + g.Redis.URL} // it has a password and so goes by the environment
	for i := range g.cfg.Livehubs {
		b, err := g.startBackend(ctx, "livehub", i, redis,
			"--kubeconfig="+ids.livehubKubeconfig, "--identity-keys-dir="+ids.identityKeysDir, "--seal-key="+ids.sealKey, g.renewFlag())
		if err != nil {
			return err
		}
		g.Livehubs = append(g.Livehubs, b)
	}
	for i := range g.cfg.Runs {
		b, err := g.startBackend(ctx, "runs", i, redis,
			"--kubeconfig="+ids.runsKubeconfig, "--identity-keys-dir="+ids.identityKeysDir, "--seal-key="+ids.runsSealKey, "--results-url="+g.Results.URL(),
			"--testkube-url="+g.Testkube.URL())
		if err != nil {
			return err
		}
		g.Runs = append(g.Runs, b)
	}
	return nil
}

// startBackend starts one replica of a backend.
func (g *Gateway) startBackend(ctx context.Context, backend string, index int, env []string, args ...string) (*Backend, error) {
	name := numbered(backend, index)
	g.cfg.Progress("starting " + name)
	api, err := g.port()
	if err != nil {
		return nil, err
	}
	metrics, err := g.port()
	if err != nil {
		return nil, err
	}
	b := &Backend{URL: "http://" + api.Addr(), Metrics: "http://" + metrics.Addr() + "/metrics"}
	args = append([]string{"--listen=" + api.Addr(), "--metrics-listen=" + metrics.Addr()}, args...)
	b.Process, err = process.Start(ctx, process.Spec{
		Name: name, Path: filepath.Join(g.bin, backend), Log: g.log(name),
		Args: append(args, g.cfg.Args[backend]...), Env: env,
		Ready: httpReady(b.URL+"/readyz", nil, nil),
	})
	if err != nil {
		return nil, err
	}
	g.undo = append(g.undo, b.Process.Stop)
	g.add(name, b.Process, b.URL, b.Metrics)
	if !g.cfg.Relays {
		return b, nil
	}
	between, err := g.port()
	if err != nil {
		return nil, err
	}
	if b.Relay, err = relay.Start(between.Addr(), api.Addr()); err != nil {
		return nil, err
	}
	g.undo = append(g.undo, b.Relay.Stop)
	return b, nil
}

// backendsFlag tells xds where the replicas of each backend are.
func (g *Gateway) backendsFlag() string {
	var all []string
	for _, backend := range []struct {
		name     string
		replicas []*Backend
	}{{"livehub", g.Livehubs}, {"runs", g.Runs}} {
		var addresses []string
		for _, b := range backend.replicas {
			address := strings.TrimPrefix(b.URL, "http://")
			if b.Relay != nil {
				address = b.Relay.Addr
			}
			addresses = append(addresses, address)
		}
		all = append(all, backend.name+"="+strings.Join(addresses, ","))
	}
	return "--backends=" + strings.Join(all, ";")
}

// port reserves a port until Stop.
func (g *Gateway) port() (*ports.Port, error) {
	p, err := ports.Reserve()
	if err == nil {
		g.undo = append(g.undo, p.Release)
	}
	return p, err
}

func (g *Gateway) log(name string) string { return filepath.Join(g.cfg.Dir, "logs", name+".log") }
