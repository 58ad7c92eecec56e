package runs

import (
	"context"
	"fmt"
	"net"

	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/kube"
	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/internal/telemetry"
)

// Run serves until ctx ends, and returns when the calls under way have been
// answered.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuring runs: %w", err)
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
	from, err := openArchive(cfg, tracing)
	if err != nil {
		return err
	}
	s, err := newServer(cfg, from, tracing)
	if err != nil {
		return err
	}
	api, metrics, err := listen(cfg)
	if err != nil {
		return err
	}
	return lifecycle.Run(ctx,
		lifecycle.Loop(verifier.Run),
		lifecycle.Serve(api, newHandler(s, verifier, ready, tracing)), lifecycle.Serve(metrics, lifecycle.MetricsHandler(reg)))
}

// ready has no conditions: a source that is away is no reason to get no calls.
func ready() error { return nil }

func newServer(cfg Config, from archive, tracing *telemetry.Tracing) (*server, error) {
	cluster, err := restConfig(cfg, tracing)
	if err != nil {
		return nil, err
	}
	known, err := newNamespaces(cluster)
	if err != nil {
		return nil, err
	}
	return &server{archive: from, namespaces: known, wait: cfg.Wait}, nil
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
