package xds

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/xds/board"
	"hangar.io/glidepath/xds/model"
	"hangar.io/glidepath/xds/policy"
)

// The clusters that are not a backend's.
const (
	clusterAuthz     = "authz"
	clusterAuthzHTTP = "authz-http"
	clusterPlanned   = "planned"
	clusterCollector = "otlp"
	// streamSuffix names the cluster that holds a backend's streams, so that
	// streams and calls cannot take each other's connections.
	streamSuffix = "-streams"
)

// backendAuthz is the backend whose operations authz answers itself.
const backendAuthz = "authz"

// authzTimeout is longer than authz's own deadline of two seconds for a
// decision.
const authzTimeout = 2500 * time.Millisecond

// Build gives the edge of a contract. An operation that is served and has no
// backend, and a backend that no operation has, are errors: an edge that
// leaves something out must not start.
func Build(operations []api.Operation, pol policy.Policy, opts EdgeOptions) (*model.Edge, error) {
	in, err := opts.parse()
	if err != nil {
		return nil, fmt.Errorf("reading the options: %w", err)
	}
	e := &model.Edge{
		Listen:       in.listen,
		People:       in.people,
		TLS:          in.tls,
		Limits:       limits(),
		Authz:        clusterAuthz,
		AuthzTimeout: authzTimeout,
		Replies:      replies(),
		GRPCReply:    grpcReply(),
		Board:        boardPage(opts.Board),
		Tracing: model.Tracing{
			Service: "glidepath-edge", Cluster: clusterCollector, URL: in.tracesURL, Ratio: opts.TraceRatio,
		},
	}
	clusters := map[string]model.Cluster{
		clusterAuthz:     {Name: clusterAuthz, Endpoints: []model.Address{in.authz}, HTTP2: true, ConnectTimeout: localConnect, Breaker: wideBreaker},
		clusterCollector: {Name: clusterCollector, Endpoints: in.collector, TLS: in.collectorTLS, ConnectTimeout: connect, Breaker: breaker},
	}
	used := map[string]bool{}
	var errs []error
	for _, op := range operations {
		c, ok := clusterOf(op, in)
		if !ok {
			if !op.Planned {
				errs = append(errs, fmt.Errorf("operation %s: --backends does not say where %s is", op.ID, op.Backend))
			}
			continue
		}
		used[op.Backend] = true
		clusters[c.Name] = c
		e.Routes = append(e.Routes, route(op, pol, c.Name))
	}
	for _, name := range slices.Sorted(maps.Keys(in.backends)) {
		if !used[name] {
			errs = append(errs, fmt.Errorf("--backends: no served operation has the backend %s", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		e.Clusters = append(e.Clusters, clusters[name])
	}
	if err := errors.Join(append(errs, e.Validate())...); err != nil {
		return nil, fmt.Errorf("building the edge: %w", err)
	}
	return e, nil
}

func route(op api.Operation, pol policy.Policy, cluster string) model.Route {
	settings := pol.For(op)
	return model.Route{
		Op:              op.ID,
		Method:          op.Method,
		Path:            op.Path,
		Tier:            string(op.Tier),
		Cluster:         cluster,
		Timeout:         settings.Timeout,
		Stream:          op.Stream,
		Silence:         silence(op),
		RateLimit:       settings.RateLimit.Limit,
		CallerRateLimit: settings.CallerRateLimit.Limit,
		MaxBodyBytes:    maxBody(op),
		AuditFields:     auditFields(op.ID),
	}
}

// clusterOf gives the cluster that answers an operation, or false when nothing
// does: it is planned, or its backend's address was not given.
func clusterOf(op api.Operation, in parsed) (model.Cluster, bool) {
	c := model.Cluster{ConnectTimeout: connect, Breaker: breaker}
	switch {
	case op.Planned && len(in.planned) > 0:
		c.Name, c.Endpoints = clusterPlanned, in.planned
	case op.Planned:
		return model.Cluster{}, false
	case op.Backend == backendAuthz:
		c.Name, c.Endpoints, c.ConnectTimeout = clusterAuthzHTTP, []model.Address{in.authzHTTP}, localConnect
	case len(in.backends[op.Backend]) > 0:
		c.Name, c.Endpoints = op.Backend, in.backends[op.Backend]
	default:
		return model.Cluster{}, false
	}
	if op.Stream {
		c.Name += streamSuffix
		c.Breaker = wideBreaker
	}
	return c, true
}

// boardPage is the page for people, where it is served.
func boardPage(served bool) *model.Page {
	if !served {
		return nil
	}
	return &model.Page{Name: "_board", Path: board.Path, Body: board.HTML(), Policy: board.Policy()}
}

// replies are what Envoy answers by itself.
func replies() []model.Reply {
	var out []model.Reply
	for _, r := range problem.EdgeRules() {
		out = append(out, model.Reply{Status: uint32(r.Status), Rule: r.ID, Message: r.Message, Hint: r.Hint})
	}
	return out
}

// grpcReply is what a call gets that calls itself gRPC.
func grpcReply() model.Reply {
	return model.Reply{
		Status: uint32(problem.EdgeBadRequest.Status), Rule: problem.EdgeBadRequest.ID,
		Message: "this API is not served as gRPC",
		Hint:    "send another Content-Type than application/grpc, or none",
	}
}
