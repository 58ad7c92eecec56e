package livehub

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/kube"
	"hangar.io/glidepath/internal/kubelist"
	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/internal/paging"
	"hangar.io/glidepath/internal/renewal"
	"hangar.io/glidepath/internal/seal"
	"hangar.io/glidepath/internal/streamquota"
	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/services/livehub/feed"
)

// maxFlights bounds the lists that are read or waited for at once. Most of them
// wait for their turn at the API server.
const maxFlights = 256

// Run serves until ctx ends, and returns when the calls under way have been
// answered.
func Run(ctx context.Context, cfg Config) (err error) {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuring livehub: %w", err)
	}
	reg := telemetry.NewRegistry()
	reg.MustRegister(calls.ContractInfo())
	tracing, err := telemetry.NewTracing(ctx, telemetry.Options{TraceConfig: cfg.TraceConfig, Service: "glidepath-livehub", Metrics: reg})
	if err != nil {
		return err
	}
	defer tracing.Shutdown(ctx)
	verifier, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: cfg.IdentityKeysDir, Backend: backend})
	if err != nil {
		return err
	}
	keys, err := seal.LoadKeys(cfg.SealKey)
	if err != nil {
		return err
	}
	cluster, err := restConfig(cfg, tracing)
	if err != nil {
		return err
	}
	client, err := kubelist.NewClient(cluster, kubelist.Limits{Bytes: cfg.ListBytes, Time: cfg.ListTime, Concurrent: cfg.Lists})
	if err != nil {
		return err
	}
	defer client.Close()
	redis, err := cfg.Redis.Open(backend, reg, tracing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	s, err := newServer(cfg, keys, client, redis, reg)
	if err != nil {
		return err
	}
	if s.logs, err = newLogs(cfg, cluster, reg); err != nil {
		return err
	}
	// Not before the calls under way have been answered.
	defer s.close()
	keeper, err := renewal.New(renewal.Config{
		Options: cfg.Renewal, Verifier: verifier, Quota: streamquota.New(cfg.Streams), Metrics: reg,
	})
	if err != nil {
		return err
	}
	defer s.logs.source.Close()
	s.logs.keep, s.live.keep = keeper.Keep, keeper.Keep
	s.logs.serving = s.live.serving
	api, metrics, err := listen(cfg)
	if err != nil {
		return err
	}
	return lifecycle.Run(ctx,
		lifecycle.Loop(verifier.Run), lifecycle.Loop(redis.Run), lifecycle.Loop(keeper.Run), lifecycle.Loop(s.live.run), lifecycle.Loop(s.back.run),
		lifecycle.Serve(api, newHandler(s, verifier, redis.Ready, tracing)), lifecycle.Serve(metrics, lifecycle.MetricsHandler(reg)))
}

func restConfig(cfg Config, tracing *telemetry.Tracing) (*rest.Config, error) {
	c, err := kube.Config(kube.Options{Kubeconfig: cfg.Kubeconfig, UserAgent: "glidepath-livehub"})
	if err != nil {
		return nil, err
	}
	c.Wrap(tracing.WrapTransport(kube.SpanName))
	return c, nil
}

func newServer(cfg Config, keys seal.Keys, source reader, redis *cache.Redis, reg prometheus.Registerer) (*server, error) {
	tokens, err := paging.New(keys)
	if err != nil {
		return nil, err
	}
	lists, err := cache.New(cache.Config[*snapshot]{
		Name: backend, Codec: codec{}, Seal: keys, LocalBytes: cfg.CacheBytes, FillTime: cfg.ListTime,
		ShareTime: min(cfg.Wait/2, cfg.ListTime), // the other half is for a read of its own
		Flights:   maxFlights, Metrics: reg, Redis: redis,
	})
	if err != nil {
		return nil, err
	}
	h := &hub{source: source, cache: lists, maxAge: maxAge}
	back, err := newResumption(keys, redis, reg)
	if err != nil {
		return nil, err
	}
	open := func(s calls.Scope) *feed.Feed {
		return feed.New(feed.Config{
			NamespaceUID: s.UID, Source: feedSource{hub: h, scope: s}, PollEvery: maxAge, Log: back.log(s), Resumed: back.resumed,
		})
	}
	live := newStreams(newFeeds(open, reg), cfg.MaxStreams)
	return &server{hub: h, tokens: tokens, wait: cfg.Wait, live: live, back: back}, nil
}

func listen(cfg Config) (api, metrics net.Listener, err error) {
	err = lifecycle.OpenAll(
		lifecycle.Opening{To: &api, Open: lifecycle.Listen, Addr: cfg.Listen},
		lifecycle.Opening{To: &metrics, Open: lifecycle.Listen, Addr: cfg.MetricsListen},
	)
	return api, metrics, err
}
