package devenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/standin/faultproxy"
	"hangar.io/glidepath/internal/standin/provider"
	"hangar.io/glidepath/internal/standin/relay"
	"hangar.io/glidepath/internal/standin/results"
	"hangar.io/glidepath/internal/standin/testkube"
)

// GatewayConfig says what a gateway is made of. The zero value but for Dir is one of everything on free ports.
type GatewayConfig struct {
	Dir      string // all files of this gateway; made when missing
	Port     int    // the first edge's; 0 is a free one
	Edges    int    // edge pods, each an Envoy with its authz and xds; 0 is one
	Livehubs int    // replicas of livehub; 0 is one
	Runs     int    // replicas of runs; 0 is one

	APIServer *APIServer // a running one to share, which stays with its owner; nil starts one
	Redis     *Redis     // a running one to share, which stays with its owner; nil starts one

	Faults    bool                // puts a fault proxy between the API server and the gateway's processes
	Relays    bool                // puts a relay between the edges and each replica of a backend
	PlannedTo string              // host:port that gets the operations whose backend does not exist yet
	Args      map[string][]string // further flags by process: authz, xds, livehub, runs, envoy
	Archives  bool                // has what finishes archived all the time; otherwise the sample runs alone are
	Race      bool                // builds the gateway's processes with the race detector, where there is a C compiler
	Static    bool                // builds them without cgo instead, as they are in an image
	Progress  func(line string)   // told what is being done; nil is silence
	Sockets   string              // folder for Unix sockets with a path of at most 80 bytes; empty is one under the temporary folder
	// Restarted, when set, has what ends by itself restarted until Stop, and is called after each attempt, with nil when
	// the process runs again.
	Restarted func(p *process.Process, err error)
}

// Gateway is a running gateway with the sample fleet in its API server. Its methods may be called concurrently.
type Gateway struct {
	URL       string // of the first edge
	APIServer *APIServer
	Redis     *Redis
	Faults    *faultproxy.Proxy  // nil unless asked for
	Provider  *provider.Provider // whom the gateway takes people's ID tokens of; in this process
	Results   *results.Server    // the archive of runs; in this process
	Testkube  *testkube.Server   // the tests of apps; in this process
	Edges     []*Edge
	Livehubs  []*Backend
	Runs      []*Backend
	// AuthzKubeconfig is the file with the rights that authz has at the API server.
	AuthzKubeconfig string
	// DenyList is the file of the emergency deny-list, which every authz follows; it denies nobody at first.
	DenyList string

	cfg     GatewayConfig
	root    string
	bin     string
	sockets string
	ids     identityFiles
	renewal []string // addresses of the edges' internal listeners
	parts   []Part
	extra   int      // edges beside Edges
	undo    []func() // what Stop does, last first
}

// Edge is one edge pod.
type Edge struct {
	URL                      string
	PeopleAddr               string // host:port of the route for people, which serves the API under PeopleHost alone
	Envoy                    *Envoy
	Authz, XDS               *process.Process
	AuthzMetrics, XDSMetrics string // URLs
	Sockets                  string // folder of authz.sock, authz-http.sock, xds.sock and admin.sock
	Policy                   string // the route policy file, which xds watches; it sets nothing at first

	checks string // the socket that Envoy asks for decisions
}

// Backend is one replica of a backend.
type Backend struct {
	Process *process.Process
	URL     string       // of the backend itself, behind the edge
	Metrics string       // URL
	Relay   *relay.Relay // between the edges and this replica; nil unless asked for
}

// Part is a process of the gateway, for those who list them.
type Part struct {
	Name      string
	Process   *process.Process
	Addresses []string // URLs, host:port pairs or socket paths, without credentials
}

// StartGateway starts a gateway and returns when a call through every edge is answered. The binaries are built first if they
// are out of date.
func StartGateway(ctx context.Context, cfg GatewayConfig) (*Gateway, error) {
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	cfg.Edges, cfg.Livehubs, cfg.Runs = max(cfg.Edges, 1), max(cfg.Livehubs, 1), max(cfg.Runs, 1)
	g := &Gateway{cfg: cfg}
	if err := g.start(ctx); err != nil {
		g.Stop()
		return nil, fmt.Errorf("starting the gateway: %w", err)
	}
	return g, nil
}

// Stop ends what StartGateway started, last started first. Stopping twice is harmless.
func (g *Gateway) Stop() {
	for _, undo := range slices.Backward(g.undo) {
		undo()
	}
	g.undo = nil
}

// Parts lists the processes in the order they were started.
func (g *Gateway) Parts() []Part { return slices.Clone(g.parts) }

// Binary is the path of a program of the gateway: authz, livehub, runs or xds.
func (g *Gateway) Binary(name string) string { return filepath.Join(g.bin, name) }

// IdentityKeysDir is the folder of the public keys that authz's identities are verified with.
func (g *Gateway) IdentityKeysDir() string { return g.ids.identityKeysDir }

func (g *Gateway) start(ctx context.Context) error {
	if err := os.MkdirAll(g.cfg.Dir, 0o700); err != nil {
		return err
	}
	if err := g.foundation(ctx); err != nil {
		return err
	}
	if err := g.startProvider(ctx); err != nil {
		return err
	}
	ids, err := g.identities(ctx)
	if err != nil {
		return err
	}
	g.AuthzKubeconfig = ids.authzKubeconfig
	g.ids = ids
	if err := g.prepareStreams(); err != nil {
		return err
	}
	if err := g.startResults(ctx); err != nil {
		return err
	}
	if err := g.startTestkube(); err != nil {
		return err
	}
	if err := g.startBackends(ctx, ids); err != nil {
		return err
	}
	for i := range g.cfg.Edges {
		if err := g.startEdge(ctx, i, ids); err != nil {
			return err
		}
	}
	g.URL = g.Edges[0].URL
	if g.cfg.Restarted != nil {
		g.keep(ctx)
	}
	return g.awaitCalls(ctx)
}

// keep has every process restarted until Stop, which ends that first.
func (g *Gateway) keep(ctx context.Context) {
	var all []*process.Process
	for _, part := range g.parts {
		all = append(all, part.Process)
	}
	g.undo = append(g.undo, process.Keep(ctx, g.cfg.Restarted, all...))
}

func (g *Gateway) add(name string, p *process.Process, addresses ...string) {
	g.parts = append(g.parts, Part{Name: name, Process: p, Addresses: addresses})
}

// numbered names the replicas of a process: the first one plainly, then livehub-2, livehub-3.
func numbered(name string, index int) string {
	if index == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, index+1)
}
