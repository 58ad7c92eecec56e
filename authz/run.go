// Package authz is the process that decides every call: it puts together who
// asks the API server, who keeps the namespaces, who decides, and who answers
// Envoy. What each of them does is in the packages below.
package authz

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/bucket"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/denylist"
	"hangar.io/glidepath/authz/edgemetrics"
	"hangar.io/glidepath/authz/extauthz"
	"hangar.io/glidepath/authz/forgery"
	"hangar.io/glidepath/authz/jwks"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/oidc"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/renewals"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/authz/self"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/kube"
	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/internal/telemetry"
)

// Run decides calls until ctx ends. It returns an error when it cannot start or
// when a part of it breaks, and has ended everything that it started by then.
func Run(ctx context.Context, c Config) error {
	keys, err := loadKeys(c)
	if err != nil {
		return err
	}
	cluster, err := kube.Config(kube.Options{Kubeconfig: c.Kubeconfig, UserAgent: "glidepath-authz"})
	if err != nil {
		return err
	}
	operations, err := operation.NewTable(api.Operations())
	if err != nil {
		return fmt.Errorf("reading the contract: %w", err)
	}
	reg := telemetry.NewRegistry()
	reg.MustRegister(calls.ContractInfo())
	keys.register(reg)
	tracing, err := telemetry.NewTracing(ctx, telemetry.Options{TraceConfig: c.TraceConfig, Service: "glidepath-authz", Metrics: reg})
	if err != nil {
		return err
	}
	defer tracing.Shutdown(ctx)
	cluster.Wrap(tracing.WrapTransport(kube.SpanName))
	index, err := watchNamespaces(cluster, reg)
	if err != nil {
		return err
	}
	issuerKeys := jwks.NewMetrics(reg)
	reviews, err := newReviews(cluster, reg, issuerKeys, c.TokenAudiences)
	if err != nil {
		return err
	}
	defer reviews.close()
	judge, err := newJudge(c, reg, issuerKeys, reviews, index)
	if err != nil {
		return err
	}
	defer judge.close()
	limits := newLimits(reg)
	checks, err := extauthz.NewServer(extauthz.Config{
		Operations: operations,
		Decider:    judge.decider,
		Signer:     keys.signer,
		Limits:     limits,
		Metrics:    extauthz.NewMetrics(reg),
		Tickets:    keys.tickets,
		Tracing:    tracing,
	})
	if err != nil {
		return err
	}
	closeEdge, err := readEdge(c.EnvoyAdmin, reg)
	if err != nil {
		return err
	}
	defer closeEdge()
	l, err := listen(c)
	if err != nil {
		return err
	}
	probes := http.NewServeMux()
	lifecycle.Probes(probes, index.Ready)
	return lifecycle.Run(ctx,
		lifecycle.Loop(index.Run),
		lifecycle.Loop(keys.verifier.Run),
		lifecycle.Loop(keys.signer.Run),
		lifecycle.Loop(reviews.forgery.Run),
		lifecycle.Loop(judge.people.Run),
		judge.denied.Run,
		renewStreams(l.internal, renewals.Config{
			Operations: operations, Decider: judge.decider, Denied: judge.denied, Signer: keys.signer, Tickets: keys.tickets,
			Epoch: judge.denied.Epoch, Metrics: reg,
		}),
		checks.Serve(l.checks, index.Synced()),
		lifecycle.Serve(l.self, self.NewHandler(keys.verifier, api.Operations(), judge.decider.Capabilities(operations), tracing)),
		lifecycle.Serve(l.metrics, lifecycle.MetricsHandler(reg)),
		lifecycle.Serve(l.probes, probes),
	)
}

// judge is what decides, and what it follows.
type judge struct {
	decider *decision.Decider
	people  *oidc.People
	denied  *denylist.File
}

func newJudge(c Config, reg prometheus.Registerer, issuerKeys *jwks.Metrics, reviews *reviews, index *namespaces.Index) (*judge, error) {
	people, err := oidc.NewPeople(c.OIDC, reg, issuerKeys)
	if err != nil {
		return nil, err
	}
	denied, err := denylist.Open(c.DenyList)
	if err != nil {
		return nil, err
	}
	denied.MustRegister(reg)
	return &judge{people: people, denied: denied, decider: decision.New(decision.Config{
		Authenticator: authn.ByIssuer{Issuers: people.Issuers, Default: reviews.tokens},
		Access:        reviews.access,
		Namespaces:    index,
		Delegates:     c.Delegates,
		DenyList:      denied,
	})}, nil
}

func (j *judge) close() { _ = j.denied.Close() }

func newLimits(reg prometheus.Registerer) *bucket.Table {
	limits := bucket.New(bucket.Config{})
	limits.MustRegister(reg)
	return limits
}

// readEdge serves Envoy's counters of calls, where its admin interface is given.
func readEdge(admin string, reg prometheus.Registerer) (closing func(), err error) {
	if admin == "" {
		return func() {}, nil
	}
	edge, err := edgemetrics.New(admin)
	if err != nil {
		return nil, err
	}
	reg.MustRegister(edge)
	return edge.Close, nil
}

func watchNamespaces(cluster *rest.Config, reg prometheus.Registerer) (*namespaces.Index, error) {
	client, err := metadata.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	index, err := namespaces.NewIndex(client)
	if err != nil {
		return nil, err
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "glidepath_authz_namespaces",
		Help: "Namespaces known.",
	}, func() float64 { return float64(index.Len()) }))
	return index, nil
}

// reviews are the parts that ask the API server.
type reviews struct {
	client  *review.Client
	forgery *forgery.Filter
	tokens  *review.Tokens
	access  *review.Access
}

func newReviews(cluster *rest.Config, reg prometheus.Registerer, issuerKeys *jwks.Metrics, audiences []string) (*reviews, error) {
	client, err := review.NewClient(cluster)
	if err != nil {
		return nil, err
	}
	slots, err := review.NewSlots(review.DefaultLimits())
	if err != nil {
		return nil, err
	}
	metrics := review.NewMetrics(reg, slots)
	tokens, err := review.NewTokens(client, slots, metrics, audiences)
	if err != nil {
		return nil, err
	}
	filter, err := forgery.New(forgery.Config{Cluster: cluster, Keys: issuerKeys, Metrics: reg})
	if err != nil {
		return nil, err
	}
	tokens.ScreenBy(filter)
	access, err := review.NewAccess(client, slots, metrics)
	if err != nil {
		return nil, err
	}
	return &reviews{client: client, forgery: filter, tokens: tokens, access: access}, nil
}

func (r *reviews) close() {
	r.tokens.Close()
	r.access.Close()
	r.forgery.Close()
	r.client.Close()
}

// listeners are what the process serves on.
type listeners struct {
	checks, self, metrics, probes net.Listener
	internal                      net.Listener // nil where no streams are renewed
}

func listen(c Config) (*listeners, error) {
	var l listeners
	err := lifecycle.OpenAll(
		lifecycle.Opening{To: &l.checks, Open: lifecycle.ListenUnix, Addr: c.Socket},
		lifecycle.Opening{To: &l.self, Open: lifecycle.ListenUnix, Addr: c.HTTPSocket},
		lifecycle.Opening{To: &l.metrics, Open: lifecycle.Listen, Addr: c.MetricsListen},
		lifecycle.Opening{To: &l.probes, Open: lifecycle.Listen, Addr: c.ProbeListen},
		lifecycle.Opening{To: &l.internal, Open: c.Renewals.Open, Addr: c.Renewals.Listen},
	)
	if err != nil {
		return nil, err
	}
	return &l, nil
}
