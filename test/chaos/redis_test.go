package chaos_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"testing"

	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/test/chaos/containers"
)

// slots is how many a Cluster has.
const slots = 16384

// node is a Redis in a container. It keeps nothing on disk.
type node struct {
	*containers.Container
	addr string
	db   *redis.Client
}

// login is the one user that a Redis knows.
type login struct{ user, password string }

func newLogin() login { return login{user: "glidepath", password: rand.Text()} }

// startNode starts a Redis and returns when it answers. Settings are further lines of its redis.conf.
func startNode(t *testing.T, name string, l login, settings string) *node {
	t.Helper()
	c, err := docker.Run(t.Context(), containers.Spec{
		Name: name, Image: redisImage, Network: network, Args: []string{"/redis.conf"},
		Files: map[string]string{"/redis.conf": fmt.Sprintf(
			"port 6379\ndir /\nsave \"\"\nappendonly no\nuser default off\nuser %s on >%s ~* &* +@all\n%s", l.user, l.password, settings)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	n := &node{Container: c, addr: net.JoinHostPort(c.Addr.String(), "6379")}
	n.db = redis.NewClient(&redis.Options{Addr: n.addr, Username: l.user, Password: l.password, DialTimeout: stepTime, ReadTimeout: stepTime})
	t.Cleanup(func() { _ = n.db.Close() })
	eventually(t, name+" answers", func() error { return n.db.Ping(t.Context()).Err() })
	return n
}

// startCluster starts three nodes that hold a third of the slots each, and gives the URL that names them all. A node that
// is not heard of for two seconds counts as failed, and then no slot is served.
func startCluster(t *testing.T) ([]*node, string) {
	t.Helper()
	const size = 3
	l := newLogin()
	var nodes []*node
	for i := range size {
		n := startNode(t, fmt.Sprintf("redis-cluster-%d", i+1), l, "cluster-enabled yes\ncluster-node-timeout 2000\n")
		first, last := i*slots/size, (i+1)*slots/size-1
		if err := n.db.ClusterAddSlotsRange(t.Context(), first, last).Err(); err != nil {
			t.Fatal(err)
		}
		if err := n.db.Do(t.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	for _, n := range nodes[1:] {
		if err := nodes[0].db.ClusterMeet(t.Context(), n.Addr.String(), "6379").Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		eventually(t, "the Cluster is whole to "+n.addr, func() error { return whole(t.Context(), n) })
	}
	return nodes, redisURL(l, nodes...)
}

// whole says whether a node sees every slot served.
func whole(ctx context.Context, n *node) error {
	info, err := n.db.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	for _, want := range []string{"cluster_state:ok", "cluster_known_nodes:3", "cluster_size:3"} {
		if !containsLine(info, want) {
			return fmt.Errorf("no %s in %s", want, info)
		}
	}
	return nil
}

// redisURL is what an operator gives livehub: one node, or all nodes of a Cluster.
func redisURL(l login, nodes ...*node) string {
	u := url.URL{Scheme: "redis", User: url.UserPassword(l.user, l.password), Host: nodes[0].addr, Path: "/0"}
	q := url.Values{}
	for _, n := range nodes[1:] {
		q.Add("addr", n.addr)
	}
	u.RawQuery = q.Encode()
	return u.String()
}
