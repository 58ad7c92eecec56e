package devenv

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/faultproxy"
)

// foundation starts what the gateway's processes stand on while their binaries are built.
func (g *Gateway) foundation(ctx context.Context) error {
	var err error
	if g.root, err = Root(); err != nil {
		return err
	}
	if err := g.makeSockets(); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.startAPIServer(groupCtx) })
	group.Go(func() error { return g.startRedis(groupCtx) })
	group.Go(func() error {
		var err error
		g.bin, err = buildBinaries(groupCtx, g.root, g.cfg)
		return err
	})
	err = group.Wait()
	g.own()
	if err != nil || !g.cfg.Faults {
		return err
	}
	return g.startFaults()
}

// makeSockets makes the folder for sockets. It is not under Dir: the kernel takes paths of 107 bytes, and a test's name may
// be longer than that.
func (g *Gateway) makeSockets() (err error) {
	if g.sockets = g.cfg.Sockets; g.sockets == "" {
		g.sockets, err = os.MkdirTemp("", "gp-")
	} else {
		err = os.MkdirAll(g.sockets, 0o700)
	}
	if err != nil {
		return fmt.Errorf("making a folder for sockets: %w", err)
	}
	g.undo = append(g.undo, func() { _ = os.RemoveAll(g.sockets) })
	return nil
}

// own notes what was started at the same time, so that Stop ends it and Parts lists it.
func (g *Gateway) own() {
	if a := g.APIServer; a != nil && g.cfg.APIServer == nil {
		g.undo = append(g.undo, a.Stop)
		g.add("etcd", a.Etcd.Process, "https://"+a.Etcd.Addr)
		g.add("kube-apiserver", a.Process, a.URL)
	}
	if r := g.Redis; r != nil && g.cfg.Redis == nil {
		g.undo = append(g.undo, r.Stop)
		g.add("redis", r.Process, r.port.Addr())
	}
}

func (g *Gateway) startAPIServer(ctx context.Context) (err error) {
	g.APIServer = g.cfg.APIServer
	if g.APIServer == nil {
		g.cfg.Progress("starting etcd and the API server")
		if g.APIServer, err = StartAPIServer(ctx, APIServerConfig{Dir: filepath.Join(g.cfg.Dir, "kube")}); err != nil {
			return err
		}
	}
	g.cfg.Progress("applying the sample fleet")
	return fleet.Apply(ctx, g.APIServer.Admin)
}

func (g *Gateway) startRedis(ctx context.Context) (err error) {
	if g.Redis = g.cfg.Redis; g.Redis == nil {
		g.Redis, err = StartRedis(ctx, RedisConfig{Dir: filepath.Join(g.cfg.Dir, "redis")})
	}
	return err
}

// startFaults starts a proxy that shows a certificate of the API server's own authority.
func (g *Gateway) startFaults() error {
	port, err := ports.Reserve()
	if err != nil {
		return err
	}
	g.undo = append(g.undo, port.Release)
	shown, err := g.APIServer.ca.Issue(pki.Loopback("fault-proxy"))
	if err != nil {
		return err
	}
	certificate, err := shown.TLS()
	if err != nil {
		return err
	}
	g.Faults, err = faultproxy.Start(faultproxy.Config{
		Addr: port.Addr(), Certificate: certificate, Target: g.APIServer.URL,
		TargetTLS: &tls.Config{RootCAs: g.APIServer.ca.Pool(), MinVersion: tls.VersionTLS13},
	})
	if err != nil {
		return err
	}
	g.undo = append(g.undo, g.Faults.Stop)
	return nil
}

// kubeURL is where the gateway's processes find the API server.
func (g *Gateway) kubeURL() string {
	if g.Faults != nil {
		return g.Faults.URL()
	}
	return g.APIServer.URL
}
