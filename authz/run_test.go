package authz_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz"
	"hangar.io/glidepath/authz/apifake"
	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
)

// process is a running authz.
type process struct {
	t      testing.TB
	config authz.Config
	conn   *grpc.ClientConn
	self   *http.Client // to its HTTP socket
	web    *http.Client // to its ports
	end    func() error
}

// configuration gives a configuration with keys, sockets and ports of its own.
func configuration(t testing.TB, kubeconfig string) authz.Config {
	t.Helper()
	dir := t.TempDir()
	sockets, err := os.MkdirTemp("", "gp-") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	c := authz.Config{
		Socket: filepath.Join(sockets, "authz.sock"), HTTPSocket: filepath.Join(sockets, "authz-http.sock"), Kubeconfig: kubeconfig,
		IdentityKey: filepath.Join(dir, "key.pem"), IdentityKeysDir: filepath.Join(dir, "public"),
		MetricsListen: address(t), ProbeListen: address(t),
	}
	if err := identity.GenerateKeyPair(c.IdentityKey, c.IdentityKeysDir); err != nil {
		t.Fatal(err)
	}
	return c
}

func address(t testing.TB) string {
	t.Helper()
	p, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return ports.Loopback(p.Number)
}

// run starts an authz and waits until it is ready.
func run(t testing.TB, c authz.Config) *process {
	t.Helper()
	p := launch(t, c)
	p.eventually("it is ready", func() bool {
		status, _ := p.http(p.web, "http://"+c.ProbeListen+"/readyz", nil)
		return status == http.StatusOK
	})
	return p
}

func launch(t testing.TB, c authz.Config) *process {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- authz.Run(ctx, c) }()
	conn, err := grpc.NewClient("unix://"+c.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.HTTPSocket)
	}
	p := &process{t: t, config: c, conn: conn, self: &http.Client{Transport: &http.Transport{DialContext: dial}}, web: &http.Client{Transport: &http.Transport{}}}
	var result error
	stopped := false
	p.end = func() error {
		if !stopped {
			stopped = true
			cancel()
			result = <-ended
		}
		return result
	}
	t.Cleanup(func() {
		p.self.CloseIdleConnections()
		p.web.CloseIdleConnections()
		_ = conn.Close()
		if err := p.end(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *process) eventually(what string, holds func() bool) {
	p.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			p.t.Fatal("never: " + what)
		}
	}
}

func (p *process) http(client *http.Client, url string, header http.Header) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// answer is what a check came to.
type answer struct {
	t    testing.TB
	op   api.Operation
	keys string
	resp *authv3.CheckResponse
	took time.Duration
}

func (a answer) allowed() bool { return a.resp.GetStatus().GetCode() == 0 }

// rule gives the rule of a refusal, "" for an allowed call.
func (a answer) rule() string { return a.body().Rule }

func (a answer) body() problem.Body {
	a.t.Helper()
	var b problem.Body
	if !a.allowed() {
		if err := json.Unmarshal([]byte(a.resp.GetDeniedResponse().GetBody()), &b); err != nil {
			a.t.Fatal(err)
		}
	}
	return b
}

func (a answer) identity() string {
	a.t.Helper()
	if !a.allowed() {
		a.t.Fatalf("refused: %+v", a.body())
	}
	return a.resp.GetOkResponse().GetHeaders()[0].GetHeader().GetValue()
}

// claims gives the identity as its backend sees it.
func (a answer) claims() *identity.Claims {
	a.t.Helper()
	v, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: a.keys, Backend: a.op.Backend})
	if err != nil {
		a.t.Fatal(err)
	}
	c, err := v.Verify(a.identity())
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// check asks as Envoy does for a call of op at path with this token.
func (p *process) check(op, path, token string, headers ...string) answer {
	p.t.Helper()
	o, ok := api.Lookup(op)
	if !ok {
		p.t.Fatalf("no operation %q", op)
	}
	h := map[string]string{}
	if token != "" {
		h["authorization"] = "Bearer " + token
	}
	for i := 0; i < len(headers); i += 2 {
		h[headers[i]] = headers[i+1]
	}
	began := time.Now()
	resp, err := authv3.NewAuthorizationClient(p.conn).Check(p.t.Context(), &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Request:           &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{Method: o.Method, Path: path, Headers: h}},
		ContextExtensions: map[string]string{"op": op},
	}}, grpc.WaitForReady(true))
	if err != nil {
		p.t.Fatal(err)
	}
	return answer{t: p.t, op: o, keys: p.config.IdentityKeysDir, resp: resp, took: time.Since(began)}
}

// fakeCluster starts an API server stand-in and gives a kubeconfig for it.
func fakeCluster(t *testing.T) (*apifake.Server, string) {
	t.Helper()
	s := &apifake.Server{}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, file, s.Start(t))
	return s, file
}

func writeKubeconfig(t *testing.T, path string, to *rest.Config) {
	t.Helper()
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["x"] = &clientcmdapi.Cluster{Server: to.Host, CertificateAuthorityData: to.CAData}
	cfg.AuthInfos["x"] = &clientcmdapi.AuthInfo{Token: to.BearerToken}
	cfg.Contexts["x"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	cfg.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*cfg, path); err != nil {
		t.Fatal(err)
	}
}

func TestTheProcessFromStartToEnd(t *testing.T) {
	s, kubeconfig := fakeCluster(t)
	s.AddNamespace("app-shop-cicd")
	s.AcceptUser("reader", "reader")
	s.AcceptUser("tower", "tower")
	s.Grant("reader", "list", "runs", "app-shop-cicd")
	c := configuration(t, kubeconfig)
	c.Delegates = []string{"tower"}
	p := run(t, c)
	if got := p.check("listLive", "/v1/apps/shop/live", "reader").claims(); got.Subject != "reader" || got.NamespaceUID != "uid-of-app-shop-cicd" {
		t.Errorf("got %+v", got)
	}
	health, err := healthpb.NewHealthClient(p.conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v %v", health, err)
	}
	// The answer of whoami, the way Envoy gets it: with the identity of a check.
	who := p.check("whoami", "/v1/whoami", "tower", "x-glidepath-on-behalf-of", "ana")
	status, body := p.http(p.self, "http://authz/v1/whoami", http.Header{identity.Header: {who.identity()}})
	if status != http.StatusOK || !strings.Contains(body, `"username":"tower"`) || !strings.Contains(body, `"onBehalfOf":"ana"`) || !strings.Contains(body, `"delegate":true`) {
		t.Errorf("whoami: %d %s", status, body)
	}
	contract := p.check("getContract", "/v1/contract", "reader")
	if status, body := p.http(p.self, "http://authz/v1/contract", http.Header{identity.Header: {contract.identity()}}); status != http.StatusOK || body != string(api.Contract()) {
		t.Errorf("contract: %d %.80s", status, body)
	}
	status, metrics := p.http(p.web, "http://"+c.MetricsListen+"/metrics", nil)
	for _, want := range []string{
		`glidepath_authz_checks_total{decision="allow",rule=""} 3`, `glidepath_authz_reviews_total{kind="token",result="accepted"} 2`,
		"glidepath_authz_namespaces 1", `glidepath_authz_review_slots{class="write"} 64`, "go_goroutines",
	} {
		if status != http.StatusOK || !strings.Contains(metrics, want) {
			t.Errorf("%q is not in the metrics (%d)", want, status)
		}
	}
	if strings.Contains(metrics, "glidepath_api_requests_total") {
		t.Error("the metrics of calls, without an Envoy to ask")
	}
	if err := p.end(); err != nil {
		t.Errorf("its end: %v", err)
	}
	if _, err := os.Stat(c.Socket); err == nil {
		t.Error("it left its socket behind")
	}
}

func TestItIsNotReadyBeforeItKnowsTheNamespaces(t *testing.T) {
	s, kubeconfig := fakeCluster(t)
	s.AcceptUser("reader", "reader")
	s.Grant("reader", "list", "runs", "")
	s.AddNamespace("app-shop-cicd")
	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/namespaces" {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	c := configuration(t, kubeconfig)
	p := launch(t, c)
	probe := func(path string) (int, string) {
		return p.http(p.web, "http://"+c.ProbeListen+path, nil)
	}
	p.eventually("it lives", func() bool { status, _ := probe("/healthz"); return status == http.StatusOK })
	if status, body := probe("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "namespaces") {
		t.Errorf("ready: %d %s", status, body)
	}
	if got := p.check("listLive", "/v1/apps/shop/live", "reader").rule(); got != "GP-API-502" {
		t.Errorf("a call about an app: %s", got)
	}
	// What needs no namespace is answered.
	if got := p.check("listLiveRuns", "/v1/live", "reader").rule(); got != "" {
		t.Errorf("a call about the fleet: %s", got)
	}
	s.Fail(nil)
	p.eventually("it is ready", func() bool { status, _ := probe("/readyz"); return status == http.StatusOK })
	if got := p.check("listLive", "/v1/apps/shop/live", "reader").rule(); got != "" {
		t.Errorf("a call about an app, then: %s", got)
	}
}

func TestWhatKeepsItFromStartingIsSaid(t *testing.T) {
	_, kubeconfig := fakeCluster(t)
	other := configuration(t, kubeconfig)
	for name, tc := range map[string]struct {
		breakIt func(*authz.Config)
		says    string
	}{
		"a key that nobody knows":       {func(c *authz.Config) { c.IdentityKeysDir = other.IdentityKeysDir }, "does not hold the public key"},
		"a key that is none":            {func(c *authz.Config) { c.IdentityKey = kubeconfig }, "PRIVATE KEY"},
		"no public key":                 {func(c *authz.Config) { c.IdentityKeysDir = t.TempDir() }, "no identity key"},
		"a kubeconfig that is none":     {func(c *authz.Config) { c.Kubeconfig = c.IdentityKey }, "API server"},
		"a port in use":                 {func(c *authz.Config) { c.ProbeListen = c.MetricsListen }, "listening"},
		"a socket nobody may make":      {func(c *authz.Config) { c.Socket = "/nowhere/at/all.sock" }, "listening"},
		"an admin interface of the net": {func(c *authz.Config) { c.EnvoyAdmin = "http://envoy:1" }, "loopback"},
	} {
		t.Run(name, func(t *testing.T) {
			c := configuration(t, kubeconfig)
			tc.breakIt(&c)
			err := authz.Run(t.Context(), c)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(c.Socket); err == nil {
				t.Error("it left its socket behind")
			}
		})
	}
}

func TestEnvoysCountersAreAmongItsMetrics(t *testing.T) {
	_, kubeconfig := fakeCluster(t)
	c := configuration(t, kubeconfig)
	admin := filepath.Join(filepath.Dir(c.Socket), "admin.sock")
	l, err := net.Listen("unix", admin)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# TYPE envoy_glidepath_api_requests counter\nenvoy_glidepath_api_requests{op=\"whoami\",tier=\"T0\",code=\"200\",decision=\"allow\"} 5\n"))
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		_ = srv.Close()
		<-served
	})
	c.EnvoyAdmin = "unix://" + admin
	p := run(t, c)
	_, metrics := p.http(p.web, "http://"+c.MetricsListen+"/metrics", nil)
	if !slices.Contains(strings.Split(metrics, "\n"), `glidepath_api_requests_total{code="200",decision="allow",op="whoami",tier="T0"} 5`) {
		t.Errorf("got %s", metrics)
	}
}
