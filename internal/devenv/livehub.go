package devenv

import (
	"context"
	"path/filepath"

	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/standin/relay"
)

// startLivehub starts one replica. Its Redis URL has a password and so goes by the environment.
func (g *Gateway) startLivehub(ctx context.Context, index int, ids identityFiles) error {
	name := numbered("livehub", index)
	g.cfg.Progress("starting " + name)
	api, err := g.port()
	if err != nil {
		return err
	}
	metrics, err := g.port()
	if err != nil {
		return err
	}
	b := &Backend{URL: "http://" + api.Addr(), Metrics: "http://" + metrics.Addr() + "/metrics"}
	b.Process, err = process.Start(ctx, process.Spec{
		Name: name, Path: filepath.Join(g.bin, "livehub"), Log: g.log(name),
		Args: append([]string{
			"--listen=" + api.Addr(), "--metrics-listen=" + metrics.Addr(), "--kubeconfig=" + ids.livehubKubeconfig,
			"--identity-keys-dir=" + ids.identityKeysDir, "--seal-key=" + ids.sealKey, g.renewFlag(),
		}, g.cfg.Args["livehub"]...),
		Env:   []string{"REDIS_CACHE_URL=" + g.Redis.URL},
		Ready: httpReady(b.URL+"/readyz", nil, nil),
	})
	if err != nil {
		return err
	}
	g.undo = append(g.undo, b.Process.Stop)
	g.add(name, b.Process, b.URL, b.Metrics)
	g.Livehubs = append(g.Livehubs, b)
	if !g.cfg.Relays {
		return nil
	}
	between, err := g.port()
	if err != nil {
		return err
	}
	if b.Relay, err = relay.Start(between.Addr(), api.Addr()); err != nil {
		return err
	}
	g.undo = append(g.undo, b.Relay.Stop)
	return nil
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
