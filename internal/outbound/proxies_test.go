package outbound

import (
	"net/http"
	"strings"
	"testing"
)

func TestWhoIsReachedThroughAProxy(t *testing.T) {
	t.Parallel()
	const except = "localhost.corp, .svc,cluster.local ,10.0.0.0/8,192.0.2.7,registry.example:5000"
	for name, tt := range map[string]struct {
		target string
		want   string
	}{
		"a host that nothing excepts":         {"https://ghcr.example/v2/", "http://proxy.example:3128"},
		"without TLS, by the other proxy":     {"http://rekor.example/", "http://plain.example:8080"},
		"a name of an excepted domain":        {"https://kubernetes.default.svc/api", ""},
		"the domain itself with a dot":        {"https://svc/api", "http://proxy.example:3128"},
		"a domain without a dot":              {"https://cluster.local/", ""},
		"a name of a domain without a dot":    {"https://a.b.cluster.local/", ""},
		"a name that only ends alike":         {"https://notcluster.local/", "http://proxy.example:3128"},
		"an address of an excepted network":   {"https://10.96.0.1:443/api", ""},
		"an address of another network":       {"https://11.96.0.1:443/api", "http://proxy.example:3128"},
		"an excepted address":                 {"https://192.0.2.7/", ""},
		"an excepted port":                    {"https://registry.example:5000/v2/", ""},
		"another port of the same host":       {"https://registry.example/v2/", "http://proxy.example:3128"},
		"this machine, which nothing excepts": {"https://127.0.0.1:6443/", ""},
		"this machine by name":                {"https://localhost:6443/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := NewProxies("http://proxy.example:3128", "plain.example:8080", except)
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.target, nil)
			if err != nil {
				t.Fatal(err)
			}
			u, err := p.For(r)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if u != nil {
				got = u.String()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEverythingCanBeExcepted(t *testing.T) {
	t.Parallel()
	p, err := NewProxies("http://proxy.example:3128", "", "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Proxies{p, {}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://ghcr.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if u, err := p.For(r); u != nil || err != nil {
			t.Errorf("got %v, %v", u, err)
		}
	}
}

func TestAProxyThatIsNoneIsSaidWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"http://user:hunter2@:3128", "http://user:hunter2@proxy:port", "socks5://user:hunter2@proxy:1080", "http://user:hunter2%zz@proxy", "://hunter2",
	} {
		for i, name := range []string{"HTTPS_PROXY", "HTTP_PROXY"} {
			values := [2]string{}
			values[i] = value
			_, err := NewProxies(values[0], values[1], "")
			if err == nil || !strings.Contains(err.Error(), name+": ") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s=%s gives %v", name, value, err)
			}
		}
	}
}

func TestTheEnvironmentSaysWhichProxies(t *testing.T) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "REQUEST_METHOD"} {
		t.Setenv(name, "")
	}
	t.Setenv("https_proxy", "proxy.example:3128")
	t.Setenv("NO_PROXY", "inside.example")
	p, err := ProxiesFromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]bool{"https://outside.example/": true, "https://inside.example/": false} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if u, err := p.For(r); (u != nil) != want || err != nil {
			t.Errorf("%s: %v, %v", target, u, err)
		}
	}
	t.Setenv("https_proxy", "socks5://x")
	if _, err := ProxiesFromEnvironment(); err == nil {
		t.Error("a proxy that cannot be used was taken")
	}
}
