package devenv

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/devenv/process"
)

// EtcdConfig says where an etcd keeps its things.
type EtcdConfig struct {
	Dir string // data, certificates and the log; made when missing
}

// Etcd is a running single member, reachable on loopback with a client certificate of its own authority only.
type Etcd struct {
	Process *process.Process
	Addr    string // host:port

	caFile, certFile, keyFile string
	ports                     []*ports.Port
}

// StartEtcd starts an etcd. Data that Dir holds from before is served again. Writes are not synced to disk: what it keeps
// survives a crash of etcd, not one of the machine.
func StartEtcd(ctx context.Context, cfg EtcdConfig) (*Etcd, error) {
	path, err := Tool("etcd")
	if err != nil {
		return nil, err
	}
	e := &Etcd{}
	probe, err := e.prepare(cfg.Dir)
	if err != nil {
		e.Stop()
		return nil, fmt.Errorf("preparing etcd: %w", err)
	}
	e.Process, err = process.Start(ctx, process.Spec{
		Name: "etcd", Path: path, Args: e.args(cfg.Dir), Log: filepath.Join(cfg.Dir, "etcd.log"), Ready: probe,
	})
	if err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

// Stop ends etcd and gives its ports back.
func (e *Etcd) Stop() {
	if e.Process != nil {
		e.Process.Stop()
	}
	for _, p := range e.ports {
		p.Release()
	}
}

func (e *Etcd) prepare(dir string) (ready func(context.Context) error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for range 2 {
		p, err := ports.Reserve()
		if err != nil {
			return nil, err
		}
		e.ports = append(e.ports, p)
	}
	e.Addr = e.ports[0].Addr()
	ca, err := pki.NewAuthority("etcd-ca")
	if err != nil {
		return nil, err
	}
	e.caFile = filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(e.caFile, ca.PEM, 0o600); err != nil {
		return nil, err
	}
	member, err := ca.Issue(pki.Loopback("etcd"))
	if err != nil {
		return nil, err
	}
	if e.certFile, e.keyFile, err = member.Write(dir, "etcd"); err != nil {
		return nil, err
	}
	client, err := ca.ClientTLS(member)
	if err != nil {
		return nil, err
	}
	return httpReady("https://"+e.Addr+"/health", client, nil), nil
}

func (e *Etcd) args(dir string) []string {
	client, peer := "https://"+e.ports[0].Addr(), "https://"+e.ports[1].Addr()
	return []string{
		"--name=dev",
		"--data-dir=" + filepath.Join(dir, "data"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=dev=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + e.caFile, "--cert-file=" + e.certFile, "--key-file=" + e.keyFile,
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + e.caFile, "--peer-cert-file=" + e.certFile, "--peer-key-file=" + e.keyFile,
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

// httpReady probes a URL once a call and is content with 200 alone. Each probe uses a connection of its own: nothing of it
// is left once the process is ready.
func httpReady(url string, tlsConfig *tls.Config, transport *http.Transport) func(context.Context) error {
	if transport == nil {
		transport = &http.Transport{}
	}
	transport.TLSClientConfig = tlsConfig
	transport.DisableKeepAlives = true
	client := &http.Client{Transport: transport, Timeout: 2 * time.Second}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, resp.Status)
		}
		return nil
	}
}
