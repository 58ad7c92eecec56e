package devenv

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Issuer is the issuer of the API server's ServiceAccount tokens, and their audience when none is asked for.
const Issuer = "https://kubernetes.default.svc.cluster.local"

func (a *APIServer) args() []string {
	return append([]string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", a.port.Number),
		"--endpoint-reconciler-type=none", // loopback is no address for the endpoints of Service kubernetes
		"--etcd-servers=https://" + a.Etcd.Addr,
		"--etcd-cafile=" + a.Etcd.caFile, "--etcd-certfile=" + a.Etcd.certFile, "--etcd-keyfile=" + a.Etcd.keyFile,
		"--tls-cert-file=" + a.file("serving.crt"), "--tls-private-key-file=" + a.file("serving.key"),
		"--client-ca-file=" + a.file("ca.crt"),
		"--anonymous-auth=false",
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=" + Issuer,
		"--service-account-signing-key-file=" + a.file("service-accounts.key"),
		"--service-account-key-file=" + a.file("service-accounts.crt"),
		"--audit-policy-file=" + a.file("audit-policy.yaml"),
		"--audit-log-path=" + a.file("audit.log"),
		"--audit-log-maxsize=100", "--audit-log-maxbackup=1",
		"--profiling=false",
	}, a.kubeletArgs()...)
}

// ready wants the API server ready and its first namespace made, which happens shortly after.
func (a *APIServer) ready(ctx context.Context) error {
	if err := a.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	_, err := a.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
	return err
}
