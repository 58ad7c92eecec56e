package devenv

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/devenv/process"
)

const redisUser = "glidepath"

// RedisConfig says how a Redis is run. Dir is required.
type RedisConfig struct {
	Dir      string   // its configuration and log; made when missing
	Settings []string // further lines of redis.conf, such as "maxmemory 64mb"
	Password string   // of the one user; a random one when empty
}

// Redis is a running server that keeps nothing on disk and knows one user, who has a random password. Its Process can be
// paused, killed and restarted; it comes back empty on the same port.
type Redis struct {
	Process *process.Process
	URL     string // redis://user:password@host:port/0, for REDIS_CACHE_URL

	port *ports.Port
	bus  *ports.Port // of a Cluster's node, for its peers
}

// clusterEnabled is the line of redis.conf that makes a server the node of a Cluster.
const clusterEnabled = "cluster-enabled yes"

// StartRedis starts a Redis and returns when it answers its user.
func StartRedis(ctx context.Context, cfg RedisConfig) (*Redis, error) {
	path, err := Tool("redis-server")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("preparing Redis: %w", err)
	}
	port, err := ports.Reserve()
	if err != nil {
		return nil, fmt.Errorf("preparing Redis: %w", err)
	}
	password := cfg.Password
	if password == "" {
		password = rand.Text()
	}
	r := &Redis{port: port}
	if slices.Contains(cfg.Settings, clusterEnabled) {
		// Redis would take the port 10000 above its own, which may be one that the kernel gave to an outgoing connection.
		if r.bus, err = ports.Reserve(); err != nil {
			r.Stop()
			return nil, fmt.Errorf("preparing Redis: %w", err)
		}
		cfg.Settings = append(slices.Clone(cfg.Settings), fmt.Sprintf("cluster-port %d", r.bus.Number))
	}
	r.URL = (&url.URL{Scheme: "redis", User: url.UserPassword(redisUser, password), Host: port.Addr(), Path: "/0"}).String()
	file := filepath.Join(cfg.Dir, "redis.conf")
	if err := os.WriteFile(file, redisSettings(port.Number, password, cfg), 0o600); err != nil {
		r.Stop()
		return nil, fmt.Errorf("preparing Redis: %w", err)
	}
	r.Process, err = process.Start(ctx, process.Spec{
		Name: "redis", Path: path, Args: []string{file}, Log: filepath.Join(cfg.Dir, "redis.log"), Ready: r.ping,
	})
	if err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// Stop ends the server and gives its ports back.
func (r *Redis) Stop() {
	if r.Process != nil {
		r.Process.Stop()
	}
	r.port.Release()
	r.bus.Release()
}

func (r *Redis) ping(ctx context.Context) error {
	_, err := r.Do(ctx, "ping")
	return err
}

// Do sends the server one command, as the user that may do everything.
func (r *Redis) Do(ctx context.Context, command ...any) (any, error) {
	opts, err := redis.ParseURL(r.URL)
	if err != nil {
		return nil, err
	}
	opts.MaxRetries = -1
	client := redis.NewClient(opts)
	defer client.Close()
	return client.Do(ctx, command...).Result()
}

// redisSettings is a redis.conf. The password stands in this file alone: arguments can be read by every user of the machine.
func redisSettings(port int, password string, cfg RedisConfig) []byte {
	text := fmt.Sprintf(`bind 127.0.0.1
port %d
dir %q
save ""
appendonly no
user default off
user %s on >%s ~* &* +@all
`, port, cfg.Dir, redisUser, password)
	for _, line := range cfg.Settings {
		text += line + "\n"
	}
	return []byte(text)
}
