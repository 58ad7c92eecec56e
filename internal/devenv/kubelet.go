package devenv

import (
	"crypto/tls"
	"errors"
	"fmt"

	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/standin/kubelet"
)

// KubeletFiles are the paths of what a kubelet of this API server needs, for a process of its own.
type KubeletFiles struct {
	Certificate, Key string // it shows to the API server; good on loopback
	ClientCA         string // signed the certificate that the API server shows
	Client           string // the common name in there
}

// kubeletClient is who the API server says it is to kubelets.
const kubeletClient = "kube-apiserver-kubelet-client"

// Kubelet says how a kubelet of this API server is started; the API server trusts those on loopback.
func (a *APIServer) Kubelet() KubeletFiles {
	return KubeletFiles{Certificate: a.file("kubelet.crt"), Key: a.file("kubelet.key"), ClientCA: a.file("ca.crt"), Client: kubeletClient}
}

// StartKubelet starts a kubelet of this API server in this process. It still has to be registered; the caller stops it.
func (a *APIServer) StartKubelet() (*kubelet.Kubelet, error) {
	certificate, err := tls.LoadX509KeyPair(a.file("kubelet.crt"), a.file("kubelet.key"))
	if err != nil {
		return nil, fmt.Errorf("loading the kubelet's certificate: %w", err)
	}
	return kubelet.Start(kubelet.Config{
		Addr: "127.0.0.1:0", Certificate: certificate, ClientCAs: a.ca.Pool(), Client: kubeletClient,
	})
}

// prepareKubelet makes the certificates of both ends.
func (a *APIServer) prepareKubelet() error {
	var faults []error
	for file, name := range map[string]string{"kubelet": "system:node:glidepath", "kubelet-client": kubeletClient} {
		certificate, err := a.ca.Issue(pki.Loopback(name))
		if err == nil {
			_, _, err = certificate.Write(a.dir, file)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (a *APIServer) kubeletArgs() []string {
	return []string{
		"--kubelet-certificate-authority=" + a.file("ca.crt"),
		"--kubelet-client-certificate=" + a.file("kubelet-client.crt"), "--kubelet-client-key=" + a.file("kubelet-client.key"),
	}
}
