package devenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hangar.io/glidepath/envoy"
	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/provider"
)

// PeopleHost is the host under which every edge serves people. Names below localhost lead to this machine.
const PeopleHost = "glidepath-api.localhost"

// PeopleURL is the URL of the route for people, for clients that find names below localhost.
func (e *Edge) PeopleURL() string {
	return "http://" + PeopleHost + e.PeopleAddr[strings.LastIndexByte(e.PeopleAddr, ':'):]
}

// startEdge starts authz, xds and the Envoy of one edge pod.
func (g *Gateway) startEdge(ctx context.Context, index int, ids identityFiles) error {
	e, err := g.newEdge(index)
	if err != nil {
		return err
	}
	if err := g.startAuthz(ctx, e, index, ids); err != nil {
		return err
	}
	if err := g.startProxy(ctx, e, index); err != nil {
		return err
	}
	g.Edges = append(g.Edges, e)
	return nil
}

// StartEdgeWith starts one more edge, without an authz: its Envoy has the configuration that every edge has and asks at the
// given Unix socket, which is whoever's calls it. It is not one of Edges, and ends with the gateway. Not to be called
// concurrently.
func (g *Gateway) StartEdgeWith(ctx context.Context, checks string) (*Edge, error) {
	index := len(g.Edges) + g.extra
	g.extra++
	e, err := g.newEdge(index)
	if err != nil {
		return nil, err
	}
	e.checks = checks
	if err := g.startProxy(ctx, e, index); err != nil {
		return nil, fmt.Errorf("starting an edge: %w", err)
	}
	return e, nil
}

func (g *Gateway) newEdge(index int) (*Edge, error) {
	e := &Edge{Sockets: filepath.Join(g.sockets, numbered("edge", index))}
	e.checks = e.socket("authz")
	if err := os.MkdirAll(e.Sockets, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for sockets: %w", err)
	}
	return e, nil
}

// startProxy starts xds and the Envoy that it configures.
func (g *Gateway) startProxy(ctx context.Context, e *Edge, index int) error {
	if err := g.startXDS(ctx, e, index); err != nil {
		return err
	}
	return g.startEnvoy(ctx, e, index)
}

func (e *Edge) socket(name string) string { return filepath.Join(e.Sockets, name+".sock") }

func (g *Gateway) startAuthz(ctx context.Context, e *Edge, index int, ids identityFiles) error {
	delegate, ok := fleet.LookupCaller(fleet.CallerDelegate)
	if !ok {
		return fmt.Errorf("the sample fleet has no caller %q", fleet.CallerDelegate)
	}
	var err error
	e.Authz, e.AuthzMetrics, err = g.startSidecar(ctx, "authz", index, []string{
		"--socket=" + e.socket("authz"), "--http-socket=" + e.socket("authz-http"), "--envoy-admin=unix://" + e.socket("admin"),
		"--kubeconfig=" + ids.authzKubeconfig, "--delegates=" + delegate.Username(),
		"--identity-key=" + ids.identityKey, "--identity-keys-dir=" + ids.identityKeysDir,
		"--internal-listen=" + g.renewal[index], "--renewal-keys=" + ids.renewalKeys, "--deny-list=" + g.DenyList,
		"--oidc-issuer=" + g.Provider.Issuer, "--oidc-audience=" + provider.Client, "--oidc-allowed-users=" + strings.Join(fleet.AllowedUsers(), ","),
	}, e.socket("authz"), e.socket("authz-http"))
	return err
}

func (g *Gateway) startXDS(ctx context.Context, e *Edge, index int) error {
	number := g.cfg.Port
	if number == 0 || index > 0 {
		port, err := g.port()
		if err != nil {
			return err
		}
		number = port.Number
	}
	dir := filepath.Join(g.cfg.Dir, numbered("edge", index))
	e.URL, e.Policy = "http://"+ports.Loopback(number), filepath.Join(dir, "policy.yaml")
	state := filepath.Join(dir, "xds")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("making the state folder of xds: %w", err)
	}
	if err := os.WriteFile(e.Policy, []byte("version: 1\n"), 0o600); err != nil {
		return fmt.Errorf("writing the route policy: %w", err)
	}
	people, err := g.port()
	if err != nil {
		return err
	}
	e.PeopleAddr = people.Addr()
	args := []string{
		"--people-listen=" + e.PeopleAddr, "--people-hosts=" + PeopleHost,
		"--socket=" + e.socket("xds"), "--authz-socket=" + e.checks, "--authz-http-socket=" + e.socket("authz-http"),
		"--listen=" + ports.Loopback(number), g.backendsFlag(), "--policy=" + e.Policy, "--state-dir=" + state,
	}
	if g.cfg.PlannedTo != "" {
		args = append(args, "--serve-planned="+g.cfg.PlannedTo)
	}
	e.XDS, e.XDSMetrics, err = g.startSidecar(ctx, "xds", index, args, e.socket("xds"))
	return err
}

// startSidecar starts authz or xds and returns the URL of its metrics.
func (g *Gateway) startSidecar(ctx context.Context, name string, index int, args []string, sockets ...string) (*process.Process, string, error) {
	title := numbered(name, index)
	g.cfg.Progress("starting " + title)
	metrics, err := g.port()
	if err != nil {
		return nil, "", err
	}
	probe, err := g.port()
	if err != nil {
		return nil, "", err
	}
	args = append(args, "--metrics-listen="+metrics.Addr(), "--probe-listen="+probe.Addr())
	p, err := process.Start(ctx, process.Spec{
		Name: title, Path: filepath.Join(g.bin, name), Args: append(args, g.cfg.Args[name]...), Log: g.log(title),
		Ready: httpReady("http://"+probe.Addr()+"/readyz", nil, nil),
	})
	if err != nil {
		return nil, "", err
	}
	url := "http://" + metrics.Addr() + "/metrics"
	g.undo = append(g.undo, p.Stop)
	g.add(title, p, append(sockets, url)...)
	return p, url, nil
}

func (g *Gateway) startEnvoy(ctx context.Context, e *Edge, index int) error {
	name := numbered("envoy", index)
	g.cfg.Progress("starting " + name)
	dir := filepath.Join(g.cfg.Dir, numbered("edge", index))
	bootstrap, err := envoy.Bootstrap{NodeID: numbered("edge", index), XDSSocket: e.socket("xds"), AdminSocket: e.socket("admin")}.Render()
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(file, bootstrap, 0o600); err != nil {
		return fmt.Errorf("writing Envoy's bootstrap: %w", err)
	}
	e.Envoy, err = StartEnvoy(ctx, EnvoyConfig{Dir: dir, Bootstrap: file, Admin: e.socket("admin"), Args: g.cfg.Args["envoy"]})
	if err != nil {
		return err
	}
	g.undo = append(g.undo, e.Envoy.Stop)
	g.add(name, e.Envoy.Process, e.URL, e.PeopleURL(), e.socket("admin"))
	return nil
}
