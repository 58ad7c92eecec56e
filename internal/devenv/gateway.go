package devenv

import (
	"context"
	"errors"

	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/standin/faultproxy"
)

// GatewayConfig says what a gateway is made of. The zero value but for Dir is one of everything on free ports.
type GatewayConfig struct {
	Dir      string // all files of this gateway; made when missing
	Port     int    // the first edge's; 0 is a free one
	Edges    int    // edge pods: an Envoy with its authz and xds; 0 is one
	Livehubs int    // replicas of livehub; 0 is one

	APIServer *APIServer // an already running one to share, with its fleet; nil starts one and applies the sample fleet
	Redis     *Redis     // an already running one to share; nil starts one

	Faults      bool                // puts a fault proxy between the API server and authz and livehub
	PlannedTo   string              // host:port that gets the operations whose backend does not exist yet
	Args        map[string][]string // further flags by process: authz, xds, livehub, envoy
	Race        bool                // builds the gateway's processes with the race detector
	Progress    func(line string)   // told what is being started; nil is silence
	KeepRunning bool                // restarts what ends by itself, until Stop
}

// Gateway is a running gateway. Its methods may be called concurrently.
type Gateway struct {
	URL       string // of the first edge
	APIServer *APIServer
	Redis     *Redis
	Faults    *faultproxy.Proxy // nil unless asked for
	Edges     []*Edge
	Livehubs  []*Backend
}

// Edge is one edge pod.
type Edge struct {
	URL                      string
	Envoy                    *Envoy
	Authz                    *process.Process
	XDS                      *process.Process
	Sockets                  string // folder with authz.sock, authz-http.sock, xds.sock and admin.sock
	AuthzMetrics, XDSMetrics string // URLs
	Policy                   string // the route policy file that xds watches
}

// Backend is one replica of a backend.
type Backend struct {
	Process *process.Process
	URL     string // of the backend itself, behind the edge
	Metrics string // URL
}

// StartGateway starts a gateway and returns when a call through every edge is answered.
func StartGateway(ctx context.Context, cfg GatewayConfig) (*Gateway, error) {
	return nil, errors.New("not yet")
}

// Stop ends what StartGateway started, last started first.
func (g *Gateway) Stop() {}
