package kube_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/kube"
	"hangar.io/glidepath/internal/standin/tunnel"
)

var server *devenv.APIServer

func TestMain(m *testing.M) { os.Exit(devtest.Main(m, devtest.StartAPIServer(&server))) }

// away is a name in the API server's certificate that only a proxy leads to.
const away = "kubernetes.default.svc"

func clearProxies(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"} {
		t.Setenv(name, "")
	}
}

// kubeconfig is the administrator's, changed.
func kubeconfig(t *testing.T, change func(*clientcmdapi.Cluster)) string {
	t.Helper()
	cfg, err := clientcmd.LoadFromFile(server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cfg.Clusters {
		change(c)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func list(t *testing.T, file string) error {
	t.Helper()
	cfg, err := kube.Config(kube.Options{Kubeconfig: file, UserAgent: "test", Timeout: time.Minute})
	if err != nil {
		return err
	}
	return ask(t, kubernetes.NewForConfigOrDie(cfg))
}

func ask(t *testing.T, client kubernetes.Interface) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

func TestTheWayToTheAPIServer(t *testing.T) {
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	there := "https://" + away + ":" + u.Port()
	for name, tt := range map[string]struct {
		server   string
		env      map[string]string // PROXY stands for the proxy's URL
		proxyURL string            // of the kubeconfig
		proxied  bool
		want     string // in the error
	}{
		"straight":                        {server: server.URL},
		"through the environment's proxy": {server: there, env: map[string]string{"HTTPS_PROXY": "PROXY"}, proxied: true},
		"a host that NO_PROXY excepts":    {server: there, env: map[string]string{"HTTPS_PROXY": "PROXY", "NO_PROXY": ".svc"}, want: away},
		"loopback, whatever is set":       {server: server.URL, env: map[string]string{"HTTPS_PROXY": "PROXY"}},
		"through the kubeconfig's proxy":  {server: there, proxyURL: "PROXY", proxied: true},
		"the kubeconfig's proxy comes first": {
			server: there, proxyURL: "PROXY", env: map[string]string{"HTTPS_PROXY": "http://user:hunter2@nowhere.invalid:1"}, proxied: true,
		},
		"a proxy that is none":       {server: there, env: map[string]string{"HTTPS_PROXY": "socks5://user:hunter2@x"}, want: "HTTPS_PROXY"},
		"a proxy that is away":       {server: there, env: map[string]string{"HTTPS_PROXY": "http://user:hunter2@127.0.0.1:1"}, want: "127.0.0.1:1"},
		"credentials that are wrong": {server: there, env: map[string]string{"HTTPS_PROXY": "http://user:hunter2@REFUSES"}, proxied: true, want: "Proxy Authentication Required"},
	} {
		t.Run(name, func(t *testing.T) {
			clearProxies(t)
			hosts := map[string]string{away + ":" + u.Port(): u.Host}
			open, err := tunnel.Start(tunnel.Config{Hosts: hosts})
			if err != nil {
				t.Fatal(err)
			}
			defer open.Stop()
			refuses, err := tunnel.Start(tunnel.Config{Hosts: hosts, User: "user", Password: "other"})
			if err != nil {
				t.Fatal(err)
			}
			defer refuses.Stop()
			at := strings.NewReplacer("PROXY", "http://"+open.Addr, "REFUSES", refuses.Addr)
			for k, v := range tt.env {
				t.Setenv(k, at.Replace(v))
			}
			file := kubeconfig(t, func(c *clientcmdapi.Cluster) { c.Server, c.ProxyURL = tt.server, at.Replace(tt.proxyURL) })
			err = list(t, file)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v shows the proxy's password", err)
			}
			if got := len(open.Targets())+len(refuses.Targets()) > 0; got != tt.proxied {
				t.Errorf("a proxy was asked: %t", got)
			}
		})
	}
}

func TestTheAPIServersAuthority(t *testing.T) {
	clearProxies(t)
	stranger, err := pki.NewAuthority("stranger")
	if err != nil {
		t.Fatal(err)
	}
	var good []byte
	kubeconfig(t, func(c *clientcmdapi.Cluster) { good = c.CertificateAuthorityData })
	for name, tt := range map[string]struct {
		file []byte
		want string // in the error
	}{
		"a file with the one that signed": {good, ""},
		"a file with both":                {append(stranger.PEM, good...), ""},
		"a file with another":             {stranger.PEM, "unknown authority"},
		"no file, but the system's":       {nil, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			err := list(t, kubeconfig(t, func(c *clientcmdapi.Cluster) {
				c.CertificateAuthorityData = nil
				if tt.file != nil {
					c.CertificateAuthority = filepath.Join(t.TempDir(), "ca.crt")
					if err := os.WriteFile(c.CertificateAuthority, tt.file, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
