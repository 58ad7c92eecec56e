package runs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/kube"
	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/internal/seal"
	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/internal/upstream"
	explained "hangar.io/glidepath/services/runs/explain"
)

// Run serves until ctx ends, and returns when the calls under way have been
// answered.
func Run(ctx context.Context, cfg Config) (err error) {
	return serve(ctx, cfg, api.Contract())
}

// serve is Run by a contract: the failures that explainRun knows are in it.
func serve(ctx context.Context, cfg Config, contract []byte) (err error) {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuring runs: %w", err)
	}
	failures, err := explained.FromContract(contract)
	if err != nil {
		return err
	}
	reg := telemetry.NewRegistry()
	reg.MustRegister(calls.ContractInfo())
	tracing, err := telemetry.NewTracing(ctx, telemetry.Options{TraceConfig: cfg.TraceConfig, Service: "glidepath-runs", Metrics: reg})
	if err != nil {
		return err
	}
	defer tracing.Shutdown(ctx)
	verifier, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: cfg.IdentityKeysDir, Backend: backend})
	if err != nil {
		return err
	}
	requests := upstream.NewMetrics(reg)
	from, err := openArchive(cfg, tracing, requests)
	if err != nil {
		return err
	}
	keys, err := seal.LoadKeys(cfg.SealKey)
	if err != nil {
		return err
	}
	redis, err := cfg.Redis.Open(backend, reg, tracing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	kept, err := newDocuments(cfg, keys, redis, reg)
	if err != nil {
		return err
	}
	// Not before the calls under way have been answered.
	defer kept.cache.Close()
	s, err := newServer(cfg, from, kept, tracing, reg)
	if err != nil {
		return err
	}
	s.failures = failures
	if s.tests, err = openTests(cfg, tracing, requests); err != nil {
		return err
	}
	warmer, err := newWarmer(cfg, s, redis, reg)
	if err != nil {
		return err
	}
	edge, metrics, err := listen(cfg)
	if err != nil {
		return err
	}
	return lifecycle.Run(ctx,
		lifecycle.Loop(verifier.Run), lifecycle.Loop(redis.Run), lifecycle.Loop(warmer.Run),
		lifecycle.Serve(edge, newHandler(s, verifier, redis.Ready, tracing)), lifecycle.Serve(metrics, lifecycle.MetricsHandler(reg)))
}

func newServer(cfg Config, from archive, kept *documents, tracing *telemetry.Tracing, reg prometheus.Registerer) (*server, error) {
	cluster, err := restConfig(cfg, tracing)
	if err != nil {
		return nil, err
	}
	known, err := newNamespaces(cluster)
	if err != nil {
		return nil, err
	}
	return &server{
		archive: from, namespaces: known, documents: kept,
		heavy: newTurns(heavyReads, heavyWaits, 1), passing: newTurns(passedLogs, passedWaits, passedLogs/2),
		passers: newTurns(passedLogs+passedWaits, passedWaits, passedShare),
		lists:   newBudget(allListBytes, oneListBytes), runs: newBudget(runsBytes, runsBytes), warming: newBudget(warmBytes, warmBytes),
		wait: cfg.Wait, now: time.Now, badRecords: newBadRecords(reg), passed: newPassed(reg),
	}, nil
}

func restConfig(cfg Config, tracing *telemetry.Tracing) (*rest.Config, error) {
	c, err := kube.Config(kube.Options{Kubeconfig: cfg.Kubeconfig, UserAgent: "glidepath-runs", Timeout: cfg.Wait})
	if err != nil {
		return nil, err
	}
	c.Wrap(tracing.WrapTransport(kube.SpanName))
	return c, nil
}

func listen(cfg Config) (api, metrics net.Listener, err error) {
	err = lifecycle.OpenAll(
		lifecycle.Opening{To: &api, Open: lifecycle.Listen, Addr: cfg.Listen},
		lifecycle.Opening{To: &metrics, Open: lifecycle.Listen, Addr: cfg.MetricsListen},
	)
	return api, metrics, err
}

func newBadRecords(reg prometheus.Registerer) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "glidepath_runs_bad_records_total", Help: "Records of the archive that could not be read and were left out of a list, counted with each list.",
	})
	reg.MustRegister(c)
	return c
}
