package xds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/xds/policy"
	"hangar.io/glidepath/xds/server"
	"hangar.io/glidepath/xds/translate"
)

// supplier turns what the edge is made of into what the server serves. It is
// not for concurrent use: the process builds one configuration at a time.
type supplier struct {
	operations []api.Operation
	opts       EdgeOptions
	server     *server.Server
	log        *slog.Logger

	refused prometheus.Counter

	// last is the policy of the last reading, good or not, so that a file which
	// was only touched is not reported again; nil when it could not be read, so
	// that one which is back is built again, the same as before or not.
	last []byte
}

func newSupplier(operations []api.Operation, opts EdgeOptions, srv *server.Server, r prometheus.Registerer, log *slog.Logger) *supplier {
	s := &supplier{
		operations: operations, opts: opts, server: srv, log: log,
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "glidepath_xds_refused_total", Help: "Configurations that could not be built, mostly for a bad route policy.",
		}),
	}
	r.MustRegister(s.refused)
	return s
}

// PolicyFile is a route policy as it was read. The zero value stands for an edge
// without one; a file that is empty is refused.
type PolicyFile struct {
	Name string // in errors
	Data []byte
}

func (f PolicyFile) parse(operations []api.Operation) (policy.Policy, error) {
	if f.Name == "" {
		return policy.Policy{}, nil
	}
	return policy.Parse(f.Name, f.Data, operations)
}

// Resources builds what Envoy is told.
func Resources(operations []api.Operation, pol PolicyFile, opts EdgeOptions) (*translate.Resources, error) {
	parsed, err := pol.parse(operations)
	if err != nil {
		return nil, fmt.Errorf("the route policy is refused:\n%w", err)
	}
	edge, err := Build(operations, parsed, opts)
	if err != nil {
		return nil, err
	}
	return translate.Translate(edge)
}

// first serves the first configuration: what the files say, else the last good
// one. Without either there is nothing to start with.
func (s *supplier) first(ctx context.Context, pol PolicyFile, readErr error) error {
	buildErr := readErr
	if buildErr == nil {
		_, buildErr = s.publish(ctx, pol)
	}
	s.last = pol.Data
	if buildErr == nil {
		return nil
	}
	s.refused.Inc()
	version, err := s.server.PublishStored(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("no configuration to start with: %w", buildErr), err)
	}
	s.log.Error("the configuration cannot be built; serving the last good one", "error", buildErr, "version", version)
	return nil
}

// next serves what the files say now. When it cannot be built, what is served
// stays.
func (s *supplier) next(ctx context.Context, pol PolicyFile, readErr error) {
	if readErr == nil && s.last != nil && bytes.Equal(pol.Data, s.last) {
		return
	}
	err := readErr
	changed := false
	s.last = nil
	if err == nil {
		s.last = pol.Data
		changed, err = s.publish(ctx, pol)
	}
	if err != nil {
		s.refused.Inc()
		s.server.KeepServing()
		s.log.Error("the configuration cannot be built; what is served stays", "error", err)
		return
	}
	s.log.Info("the route policy was read", "changed", changed)
}

func (s *supplier) publish(ctx context.Context, pol PolicyFile) (changed bool, err error) {
	res, err := Resources(s.operations, pol, s.opts)
	if err != nil {
		return false, err
	}
	snap, err := server.NewSnapshot(res)
	if err != nil {
		return false, err
	}
	return s.server.Publish(ctx, snap)
}
