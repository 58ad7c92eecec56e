package forgery

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/authz/jwks"
	"hangar.io/glidepath/internal/kube"
)

// Where an API server tells about the tokens that it issues. The keys are read
// here and not at the jwks_uri of the configuration, which may be an address
// for others that this process neither reaches nor trusts.
const (
	configurationPath = "/.well-known/openid-configuration"
	keysPath          = "/openid/v1/jwks"
)

// cluster is the source of the keys of the cluster's own issuer. Each reading
// finds out the issuer's name too.
type cluster struct {
	transport           http.RoundTripper
	configuration, keys jwks.Source
	issuer              atomic.Pointer[string]
}

func newCluster(cfg *rest.Config) (*cluster, error) {
	client, base, err := kube.HTTP(cfg)
	if err != nil {
		return nil, err
	}
	return &cluster{
		transport:     client.Transport,
		configuration: jwks.At(client.Transport, base.JoinPath(configurationPath).String()),
		keys:          jwks.At(client.Transport, base.JoinPath(keysPath).String()),
	}, nil
}

func (c *cluster) close() { utilnet.CloseIdleConnectionsFor(c.transport) }

// name is the issuer of the cluster's tokens, empty while it is not known.
func (c *cluster) name() string {
	if name := c.issuer.Load(); name != nil {
		return *name
	}
	return ""
}

// Fetch reads the issuer's name and its keys.
func (c *cluster) Fetch(ctx context.Context) ([]byte, error) {
	name, err := c.readName(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its issuer: %w", err)
	}
	keys, err := c.keys.Fetch(ctx)
	if err != nil {
		return nil, err
	}
	c.issuer.Store(&name)
	return keys, nil
}

func (c *cluster) readName(ctx context.Context) (string, error) {
	raw, err := c.configuration.Fetch(ctx)
	if err != nil {
		return "", err
	}
	var doc struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil || doc.Issuer == "" {
		return "", errors.New("the answer names no issuer")
	}
	return doc.Issuer, nil
}
