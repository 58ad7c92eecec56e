// Package devtest starts the parts of package devenv for a test and stops them when it ends. What cannot be started fails the
// test; the logs of the parts are kept with `go test -artifacts`.
package devtest

import (
	"context"
	"testing"

	"hangar.io/glidepath/internal/devenv"
)

// Tool returns the path of a pinned tool: envoy, redis-server, etcd or kube-apiserver.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	path, err := devenv.Tool(name)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// APIServer starts an API server with an etcd of its own. It takes some seconds: share one among the tests of a package with Main.
func APIServer(tb testing.TB, args ...string) *devenv.APIServer {
	tb.Helper()
	a, err := devenv.StartAPIServer(tb.Context(), devenv.APIServerConfig{Dir: tb.ArtifactDir(), Args: args})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(a.Stop)
	return a
}

// Redis starts a Redis; settings are further lines of its redis.conf.
func Redis(tb testing.TB, settings ...string) *devenv.Redis {
	tb.Helper()
	r, err := devenv.StartRedis(tb.Context(), devenv.RedisConfig{Dir: tb.ArtifactDir(), Settings: settings})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Stop)
	return r
}

// Envoy starts an Envoy. An empty Dir is the test's own.
func Envoy(tb testing.TB, cfg devenv.EnvoyConfig) *devenv.Envoy {
	tb.Helper()
	if cfg.Dir == "" {
		cfg.Dir = tb.ArtifactDir()
	}
	e, err := devenv.StartEnvoy(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(e.Stop)
	return e
}

// Gateway starts a whole gateway with the sample fleet. An empty Dir is the test's own.
func Gateway(tb testing.TB, cfg devenv.GatewayConfig) *devenv.Gateway {
	tb.Helper()
	if cfg.Dir == "" {
		cfg.Dir = tb.ArtifactDir()
	}
	cfg.Race = Race
	g, err := devenv.StartGateway(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(g.Stop)
	return g
}

// Sentinels starts a Redis with a replica and a Sentinel.
func Sentinels(tb testing.TB) *devenv.RedisGroup {
	tb.Helper()
	return group(tb, devenv.StartSentinels)
}

// RedisCluster starts a Redis Cluster of three nodes.
func RedisCluster(tb testing.TB) *devenv.RedisGroup {
	tb.Helper()
	return group(tb, devenv.StartRedisCluster)
}

func group(tb testing.TB, start func(ctx context.Context, dir string) (*devenv.RedisGroup, error)) *devenv.RedisGroup {
	tb.Helper()
	g, err := start(tb.Context(), tb.ArtifactDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(g.Stop)
	return g
}
