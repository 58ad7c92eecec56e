package devenv

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hangar.io/glidepath/internal/devenv/pki"
)

// processTokenLife is long, because nothing renews the tokens of the processes that `glidepath-dev up` starts.
const processTokenLife = 30 * 24 * time.Hour

// kubeconfig is one cluster and one identity: a client certificate or a token.
type kubeconfig struct {
	server string
	ca     []byte
	client pki.Pair
	token  string
}

func writeKubeconfig(path string, k kubeconfig) error {
	const name = "glidepath"
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters[name] = &clientcmdapi.Cluster{Server: k.server, CertificateAuthorityData: k.ca}
	cfg.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: k.client.Cert, ClientKeyData: k.client.Key, Token: k.token,
	}
	cfg.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	cfg.CurrentContext = name
	if err := clientcmd.WriteToFile(*cfg, path); err != nil { // the mode it writes is 0600
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// WriteKubeconfig writes a kubeconfig with the identity of an existing ServiceAccount. The server is the API server's own URL,
// or the URL of a proxy in front of it with a certificate of the same authority; empty is the API server's own.
func (a *APIServer) WriteKubeconfig(ctx context.Context, path, server, namespace, name string) error {
	token, err := a.Token(ctx, namespace, name, processTokenLife)
	if err != nil {
		return err
	}
	if server == "" {
		server = a.URL
	}
	return writeKubeconfig(path, kubeconfig{server: server, ca: a.ca.PEM, token: token})
}
