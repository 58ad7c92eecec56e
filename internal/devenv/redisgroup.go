package devenv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/devenv/process"
)

// RedisGroup is several Redis that are one to their clients.
type RedisGroup struct {
	// URL leads to whichever of them it has to, for REDIS_CACHE_URL.
	URL string
	// Nodes are those that hold something; with Sentinels the master, then its replica.
	Nodes []*Redis

	sentinel     *process.Process
	sentinelPort *ports.Port
}

// formTime bounds how long a group takes to become one.
const formTime = 30 * time.Second

// StartSentinels starts a master, a replica of it, and a Sentinel that makes the replica master once the master is away for
// a second.
func StartSentinels(ctx context.Context, dir string) (*RedisGroup, error) {
	g := &RedisGroup{}
	err := g.startSentinels(ctx, dir)
	if err != nil {
		g.Stop()
		return nil, fmt.Errorf("starting Redis with a Sentinel: %w", err)
	}
	return g, nil
}

func (g *RedisGroup) startSentinels(ctx context.Context, dir string) error {
	master, err := g.start(ctx, dir)
	if err != nil {
		return err
	}
	at, err := url.Parse(master.URL)
	if err != nil {
		return err
	}
	password, _ := at.User.Password()
	replica, err := g.start(ctx, dir, "replicaof "+at.Hostname()+" "+at.Port(), "masteruser "+redisUser, "masterauth "+password)
	if err != nil {
		return err
	}
	if err := eventually(ctx, "the replica to follow", func() bool {
		reply, err := replica.Do(ctx, "info", "replication")
		return err == nil && strings.Contains(fmt.Sprint(reply), "master_link_status:up")
	}); err != nil {
		return err
	}
	if err := g.startSentinel(ctx, filepath.Join(dir, "sentinel"), at); err != nil {
		return err
	}
	g.URL = (&url.URL{Scheme: "redis", User: at.User, Host: g.sentinelPort.Addr(), Path: "/0", RawQuery: "master_name=main"}).String()
	return nil
}

// startSentinel starts the Sentinel, and returns when it knows the replica.
func (g *RedisGroup) startSentinel(ctx context.Context, dir string, master *url.URL) error {
	path, err := Tool("redis-server")
	if err != nil {
		return err
	}
	if g.sentinelPort, err = ports.Reserve(); err != nil {
		return err
	}
	password, _ := master.User.Password()
	text := fmt.Sprintf(`bind 127.0.0.1
port %d
dir %q
sentinel monitor main %s %s 1
sentinel auth-user main %s
sentinel auth-pass main %s
sentinel down-after-milliseconds main 1000
sentinel failover-timeout main 5000
`, g.sentinelPort.Number, dir, master.Hostname(), master.Port(), redisUser, password)
	file := filepath.Join(dir, "sentinel.conf")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		return err
	}
	asked := &Redis{URL: "redis://" + g.sentinelPort.Addr()}
	g.sentinel, err = process.Start(ctx, process.Spec{
		Name: "sentinel", Path: path, Args: []string{file, "--sentinel"}, Log: filepath.Join(dir, "sentinel.log"), Ready: asked.ping,
	})
	if err != nil {
		return err
	}
	return eventually(ctx, "the Sentinel to know the replica", func() bool {
		reply, err := asked.Do(ctx, "sentinel", "replicas", "main")
		replicas, _ := reply.([]any)
		return err == nil && len(replicas) == 1
	})
}

// StartRedisCluster starts a Cluster of three masters.
func StartRedisCluster(ctx context.Context, dir string) (*RedisGroup, error) {
	g := &RedisGroup{}
	if err := g.startCluster(ctx, dir); err != nil {
		g.Stop()
		return nil, fmt.Errorf("starting a Redis Cluster: %w", err)
	}
	return g, nil
}

func (g *RedisGroup) startCluster(ctx context.Context, dir string) error {
	const slots, nodes = 16384, 3
	var first *url.URL
	others := url.Values{}
	for i := range nodes {
		node, err := g.start(ctx, dir, clusterEnabled, "cluster-node-timeout 2000")
		if err != nil {
			return err
		}
		at, err := url.Parse(node.URL)
		if err != nil {
			return err
		}
		if _, err := node.Do(ctx, "cluster", "addslotsrange", i*slots/nodes, (i+1)*slots/nodes-1); err != nil {
			return err
		}
		if first == nil {
			first = at
			continue
		}
		others.Add("addr", at.Host)
		if _, err := node.Do(ctx, "cluster", "meet", first.Hostname(), first.Port(), g.Nodes[0].bus.Number); err != nil {
			return err
		}
	}
	for _, node := range g.Nodes {
		if err := eventually(ctx, "the Cluster to be one", func() bool {
			reply, err := node.Do(ctx, "cluster", "info")
			return err == nil && strings.Contains(fmt.Sprint(reply), "cluster_state:ok") && strings.Contains(fmt.Sprint(reply), "cluster_known_nodes:3")
		}); err != nil {
			return err
		}
	}
	first.Path, first.RawQuery = "", others.Encode()
	g.URL = first.String()
	return nil
}

// start starts one more node. All have one password.
func (g *RedisGroup) start(ctx context.Context, dir string, settings ...string) (*Redis, error) {
	cfg := RedisConfig{Dir: filepath.Join(dir, numbered("redis", len(g.Nodes))), Settings: settings}
	if len(g.Nodes) > 0 {
		u, err := url.Parse(g.Nodes[0].URL)
		if err != nil {
			return nil, err
		}
		cfg.Password, _ = u.User.Password()
	}
	r, err := StartRedis(ctx, cfg)
	if err == nil {
		g.Nodes = append(g.Nodes, r)
	}
	return r, err
}

// Stop ends all of them.
func (g *RedisGroup) Stop() {
	if g.sentinel != nil {
		g.sentinel.Stop()
	}
	g.sentinelPort.Release()
	for _, n := range g.Nodes {
		n.Stop()
	}
}

func eventually(ctx context.Context, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, formTime)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
	return nil
}
