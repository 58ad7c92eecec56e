// Package devtest starts the parts of package devenv for a test and stops them when it ends. What cannot be started fails the
// test; the logs of the parts are kept with `go test -artifacts`.
package devtest

import (
	"testing"

	"hangar.io/glidepath/internal/devenv"
)

// Tool returns the path of a pinned tool: envoy, redis-server, etcd or kube-apiserver.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := devenv.Tool(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// APIServer starts an API server with an etcd of its own. It takes some seconds: share one among the tests of a package with Main.
func APIServer(t testing.TB, args ...string) *devenv.APIServer {
	t.Helper()
	a, err := devenv.StartAPIServer(t.Context(), devenv.APIServerConfig{Dir: t.ArtifactDir(), Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Stop)
	return a
}

// Redis starts a Redis; settings are further lines of its redis.conf.
func Redis(t testing.TB, settings ...string) *devenv.Redis {
	t.Helper()
	r, err := devenv.StartRedis(t.Context(), devenv.RedisConfig{Dir: t.ArtifactDir(), Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

// Envoy starts an Envoy. An empty Dir is the test's own.
func Envoy(t testing.TB, cfg devenv.EnvoyConfig) *devenv.Envoy {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.ArtifactDir()
	}
	e, err := devenv.StartEnvoy(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	return e
}

// Gateway starts a whole gateway with the sample fleet. An empty Dir is the test's own.
func Gateway(t testing.TB, cfg devenv.GatewayConfig) *devenv.Gateway {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.ArtifactDir()
	}
	cfg.Race = Race
	g, err := devenv.StartGateway(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Stop)
	return g
}
