package forgery

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/authz/jwks"
)

// Where an API server tells about the tokens that it issues. The keys are read
// here and not at the jwks_uri of the configuration, which may be an address
// for others that this process neither reaches nor trusts.
const (
	configurationPath = "/.well-known/openid-configuration"
	keysPath          = "/openid/v1/jwks"
)

// maxConfiguration bounds, in bytes, what is read of the configuration.
const maxConfiguration = 64 << 10

// cluster is the source of the keys of the cluster's own issuer. Each reading
// finds out the issuer's name too.
type cluster struct {
	client        *http.Client
	configuration string
	keys          jwks.Source
	issuer        atomic.Pointer[string]
}

func newCluster(cfg *rest.Config) (*cluster, error) {
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("addressing the API server: %w", err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return &cluster{
		client: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		configuration: base.JoinPath(configurationPath).String(),
		keys:          jwks.At(transport, base.JoinPath(keysPath).String()),
	}, nil
}

func (c *cluster) close() { utilnet.CloseIdleConnectionsFor(c.client.Transport) }

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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.configuration, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("it answered %s", resp.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxConfiguration))
	if err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	var doc struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil || doc.Issuer == "" {
		return "", errors.New("the answer names no issuer")
	}
	return doc.Issuer, nil
}
