package devenv

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/devenv/process"
)

// APIServerConfig says how an API server is run. Dir is required.
type APIServerConfig struct {
	Dir  string   // everything it and its etcd keep; made when missing
	Args []string // further flags, after the harness's own
}

// APIServer is a real kube-apiserver with an etcd of its own. It has RBAC, ServiceAccount tokens, custom resources, admission and
// an audit log; no controllers, and a kubelet only where one is started (StartKubelet). Anonymous calls are refused.
type APIServer struct {
	Process    *process.Process
	Etcd       *Etcd
	URL        string               // https://127.0.0.1:port
	Admin      *rest.Config         // a member of system:masters, without a client-side rate limit
	Client     kubernetes.Interface // with Admin's rights
	Kubeconfig string               // file with Admin's rights, mode 0600

	dir  string
	ca   *pki.Authority
	port *ports.Port
}

// StartAPIServer starts an etcd and an API server on it, and returns when that is ready and has its first namespaces.
func StartAPIServer(ctx context.Context, cfg APIServerConfig) (*APIServer, error) {
	path, err := Tool("kube-apiserver")
	if err != nil {
		return nil, err
	}
	a := &APIServer{dir: cfg.Dir}
	if err := a.prepare(); err != nil {
		a.Stop()
		return nil, fmt.Errorf("preparing the API server: %w", err)
	}
	if a.Etcd, err = StartEtcd(ctx, EtcdConfig{Dir: filepath.Join(cfg.Dir, "etcd")}); err != nil {
		a.Stop()
		return nil, err
	}
	a.Process, err = process.Start(ctx, process.Spec{
		Name: "kube-apiserver", Path: path, Args: append(a.args(), cfg.Args...),
		Log: filepath.Join(cfg.Dir, "kube-apiserver.log"), Ready: a.ready, ReadyTimeout: 3 * time.Minute, StopTimeout: 5 * time.Second,
	})
	if err != nil {
		a.Stop()
		return nil, err
	}
	return a, nil
}

// Stop ends the API server, then its etcd.
func (a *APIServer) Stop() {
	if a.Process != nil {
		a.Process.Stop()
	}
	if a.Etcd != nil {
		a.Etcd.Stop()
	}
	a.port.Release()
}

// prepare makes the keys, certificates and files that the API server is started with.
func (a *APIServer) prepare() error {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	var err error
	if a.port, err = ports.Reserve(); err != nil {
		return err
	}
	a.URL = "https://" + a.port.Addr()
	if a.ca, err = pki.NewAuthority("kubernetes-ca"); err != nil {
		return err
	}
	serving, err := a.ca.Issue(pki.Loopback("kube-apiserver"))
	if err != nil {
		return err
	}
	if _, _, err := serving.Write(a.dir, "serving"); err != nil {
		return err
	}
	accounts, err := a.ca.Issue(pki.Loopback("service-accounts"))
	if err != nil {
		return err
	}
	if _, _, err := accounts.Write(a.dir, "service-accounts"); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(a.file("ca.crt"), a.ca.PEM, 0o600),
		os.WriteFile(a.file("audit-policy.yaml"), auditPolicy, 0o600),
		a.prepareAdmin(),
		a.prepareKubelet(),
	)
}

func (a *APIServer) prepareAdmin() error {
	admin, err := a.ca.Issue(pki.Subject{Name: pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}})
	if err != nil {
		return err
	}
	a.Admin = &rest.Config{
		Host:            a.URL,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.ca.PEM, CertData: admin.Cert, KeyData: admin.Key},
		QPS:             -1,
	}
	if a.Client, err = kubernetes.NewForConfig(a.Admin); err != nil {
		return err
	}
	a.Kubeconfig = a.file("admin.kubeconfig")
	return writeKubeconfig(a.Kubeconfig, kubeconfig{server: a.URL, ca: a.ca.PEM, client: admin})
}

// ServiceAccountKeyFile is the PEM file of the key that signs ServiceAccount tokens: with it a test makes a token that is right
// but for one claim.
func (a *APIServer) ServiceAccountKeyFile() string { return a.file("service-accounts.key") }

func (a *APIServer) file(name string) string { return filepath.Join(a.dir, name) }
