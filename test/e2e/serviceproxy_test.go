package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/devenv/filelock"
	"hangar.io/glidepath/internal/fleet"
)

// edgeIP stands for the edge pod's address. It is of TEST-NET-2 (RFC 5737),
// since the API server proxies to no loopback address.
const edgeIP = "198.51.100.10"

// throughServiceProxy makes the gateway reachable through the API server's
// service proxy, as Tower reaches it, and gives the URL and a client that
// trusts the API server.
func throughServiceProxy(t *testing.T) (string, *http.Client) {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("this test has to run in CI, which must be root")
		}
		t.Skip("only root can give the loopback interface the address that the API server proxies to")
	}
	// The machine has one loopback interface, and other runs of these tests may want the address at the same time.
	only, err := filelock.Acquire(t.Context(), filepath.Join(os.TempDir(), "glidepath-edge-address"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(only.Release)
	if out, err := exec.CommandContext(t.Context(), "ip", "address", "replace", edgeIP+"/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("adding %s to lo: %v: %s", edgeIP, err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.CommandContext(cleanupContext(t), "ip", "address", "del", edgeIP+"/32", "dev", "lo").CombinedOutput(); err != nil {
			t.Errorf("removing %s from lo: %v: %s", edgeIP, err, out)
		}
	})
	port := forward(t, edgeIP, strings.TrimPrefix(gw.URL, "http://"))
	publish(t, port)
	cfg := gw.APIServer.Admin
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(cfg.CAData) {
		ca, err := os.ReadFile(cfg.CAFile)
		if err != nil || !pool.AppendCertsFromPEM(ca) {
			t.Fatalf("the API server's CA: %v", err)
		}
	}
	return gw.APIServer.URL + "/api/v1/namespaces/platform-system/services/glidepath-api:http/proxy", &http.Client{
		Timeout:   callTimeout,
		Transport: &http.Transport{DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
	}
}

// forward carries connections from a free port of ip to an address.
func forward(t *testing.T, ip, to string) int {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	// The API server keeps connections for later calls: they end with the test.
	ctx, end := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); end(); wg.Wait() })
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { carry(ctx, in, to) })
		}
	})
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func carry(ctx context.Context, in net.Conn, to string) {
	defer func() { _ = in.Close() }()
	out, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	defer context.AfterFunc(ctx, func() { _, _ = in.Close(), out.Close() })()
	done := make(chan struct{}, 2)
	pipe := func(dst, src net.Conn) {
		_, _ = io.Copy(dst, src)
		_ = dst.Close()
		_ = src.Close()
		done <- struct{}{}
	}
	go pipe(out, in)
	go pipe(in, out)
	<-done
	<-done
}

// publish gives the cluster the Service, its one endpoint and the Pod that the
// endpoint names: the API server checks that the address is really that Pod's.
func publish(t *testing.T, port int) {
	t.Helper()
	const namespace, name = fleet.PlatformNamespace, "glidepath-api"
	ctx, c := t.Context(), gw.APIServer.Client
	if err := gw.APIServer.EnsureServiceAccount(ctx, namespace, "default"); err != nil {
		t.Fatal(err)
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	pods, services, slices := c.CoreV1().Pods(namespace), c.CoreV1().Services(namespace), c.DiscoveryV1().EndpointSlices(namespace)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "envoy", Image: "envoy"}}},
	}, metav1.CreateOptions{})
	must("creating the pod", err)
	now := int64(0)
	t.Cleanup(func() {
		ctx := cleanupContext(t)
		for what, err := range map[string]error{
			"pod":     pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}),
			"service": services.Delete(ctx, name, metav1.DeleteOptions{}),
			"slice":   slices.Delete(ctx, name, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Errorf("deleting the %s: %v", what, err)
			}
		}
	})
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: edgeIP, PodIPs: []corev1.PodIP{{IP: edgeIP}}}
	pod, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	must("giving the pod its address", err)
	_, err = services.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 8080}}},
	}, metav1.CreateOptions{})
	must("creating the service", err)
	portName, portNumber, tcp, ready := "http", int32(port), corev1.ProtocolTCP, true
	_, err = slices.Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &portName, Port: &portNumber, Protocol: &tcp}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{edgeIP}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name, UID: pod.UID},
		}},
	}, metav1.CreateOptions{})
	must("creating the endpoint slice", err)
}

// grantProxy lets a sample caller use the service proxy of the gateway.
func grantProxy(t *testing.T, caller string) {
	t.Helper()
	const namespace, name = fleet.PlatformNamespace, "e2e-proxy"
	c, ok := fleet.LookupCaller(caller)
	if !ok {
		t.Fatalf("no sample caller %q", caller)
	}
	r := gw.APIServer.Client.RbacV1()
	_, err := r.Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services/proxy"}, Verbs: []string{"get", "create"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.Namespace, Name: c.ServiceAccount}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := cleanupContext(t)
		if err := r.RoleBindings(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := r.Roles(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// rule: R054, R055, R056
func TestThroughTheServiceProxyTheInnerTokenAloneCounts(t *testing.T) {
	base, proxied := throughServiceProxy(t)
	grantProxy(t, "stranger")
	send := func(path string, changes ...change) answer {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		// The proxy grant is the stranger's; what it reads is up to the inner token.
		as("stranger")(req)
		for _, c := range changes {
			c(req)
		}
		res, err := proxied.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer{status: res.StatusCode, header: res.Header, body: b}
	}
	inner := func(token string) change { return header("X-Glidepath-Authorization", "Bearer "+token) }

	who := ok(t, send("/v1/whoami", inner(tokens["reader"])))
	if text := string(uncompressed(t, who)); !strings.Contains(text, username(t, "reader")) {
		t.Errorf("got %s", text)
	}
	for _, op := range api.Operations() {
		if op.Method == http.MethodGet {
			refused(t, send(calls[op.ID]), 401, "GP-AUTH-001")
		}
	}
	refused(t, send("/v1/apps/gate-api/live", inner("nonsense")), 401, "GP-AUTH-002")
	refused(t, send("/v1/apps/gate-api/live", inner(tokens["stranger"])), 403, "GP-AUTHZ-001")

	list := ok(t, send("/v1/live?app=sky-marshall", inner(tokens["reader"])))
	direct := ok(t, get(t, "/v1/live?app=sky-marshall", as("reader")))
	if string(uncompressed(t, list)) != string(direct.body) {
		t.Error("the proxy's answer is another than the direct one")
	}
	tag := list.header.Get("ETag")
	if again := send("/v1/live?app=sky-marshall", inner(tokens["reader"]), header("If-None-Match", tag)); again.status != http.StatusNotModified {
		t.Errorf("If-None-Match %s through the proxy: got %d", tag, again.status)
	}
}
