// Package extauthz speaks Envoy's external authorization protocol: it reads a
// CheckRequest, has it decided, and turns the decision into what Envoy does. It
// owns the identity that an allowed call carries to its backend.
//
// Its answers name no header to remove. That the caller's credentials end at the
// edge is the work of the route configuration that package translate makes;
// whoever puts another Envoy before authz must have it remove them: Authorization,
// Proxy-Authorization, Cookie, X-Glidepath-Authorization and
// X-Glidepath-On-Behalf-Of.
//
// Whatever goes wrong here refuses the call.
package extauthz

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"hangar.io/glidepath/authz/bucket"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/ticket"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/telemetry"
)

// Decider decides calls; decision.Decider is one.
type Decider interface {
	Decide(context.Context, decision.Request) decision.Decision
}

// Config is what a Server needs. All fields but Tickets and Tracing are required.
type Config struct {
	Operations *operation.Table
	Decider    Decider
	Signer     Signer
	Limits     *bucket.Table
	Metrics    *Metrics
	// Tickets seals the renewal tickets of streams; nil gives none, and no
	// backend serves a stream then.
	Tickets *ticket.Sealer
	// Tracing makes the spans of checks; nil makes none.
	Tracing *telemetry.Tracing
}

// Server answers Envoy's checks. It is safe for concurrent use.
type Server struct {
	operations *operation.Table
	decider    Decider
	issuer     *issuer
	limits     *bucket.Table
	metrics    *Metrics
	tracing    *telemetry.Tracing
}

// NewServer gives a Server.
func NewServer(c Config) (*Server, error) {
	i, err := newIssuer(c.Signer, c.Tickets)
	if err != nil {
		return nil, err
	}
	if err := c.Metrics.reg.Register(i.reads.Entries("identity")); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	if c.Tracing == nil {
		c.Tracing = new(telemetry.Tracing)
	}
	return &Server{
		operations: c.Operations, decider: c.Decider, issuer: i, limits: c.Limits, metrics: c.Metrics, tracing: c.Tracing,
	}, nil
}

// check answers one call. It returns no error but for an answer that has no
// form: a refusal is an answer too, and the one that says why.
func (s *Server) check(ctx context.Context, c *call) (a answer, err error) {
	start := time.Now()
	var span trace.Span = noop.Span{}
	defer func() {
		if p := recover(); p != nil {
			s.metrics.panics.Inc()
			slog.ErrorContext(ctx, "panic in a check, the call is refused", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			a, err = s.refuse(ctx, c, &decision.Decision{}, errors.New("panic"))
		}
		span.End()
		s.metrics.seconds.Observe(time.Since(start).Seconds())
	}()
	ctx, span = s.begin(ctx)
	r, err := s.read(c)
	if err != nil {
		return s.refuse(ctx, c, &decision.Decision{}, err)
	}
	d := s.decider.Decide(ctx, r)
	if !d.Allowed() {
		if d.Refusal == nil {
			return s.refuse(ctx, c, &d, errors.New("neither allowed nor refused"))
		}
		return s.refuse(ctx, c, &d, d.Refusal)
	}
	over, err := s.count(&d, c.extensions)
	if err != nil {
		return s.refuse(ctx, c, &d, err)
	}
	if over != nil {
		s.metrics.limited.Inc()
		describe(span, c, &d, verdictAllow)
		over.problem.Record(ctx)
		return encode(limited(&d, over, traceID(ctx, c)))
	}
	a, err = s.issuer.allow(&d, r)
	if err != nil {
		return s.refuse(ctx, c, &d, err)
	}
	s.metrics.allowed.Inc()
	describe(span, c, &d, verdictAllow)
	return a, nil
}

func (s *Server) refuse(ctx context.Context, c *call, d *decision.Decision, err error) (answer, error) {
	p := problem.From(err)
	id := traceID(ctx, c)
	s.metrics.refuse(p)
	describe(trace.SpanFromContext(ctx), c, d, verdictDeny)
	p.Record(ctx)
	// A caller that has left is nobody's fault.
	if p.Status() >= http.StatusInternalServerError && !errors.Is(ctx.Err(), context.Canceled) {
		// With its rule: lifecycle's logger thins out those, and says how many.
		slog.ErrorContext(ctx, "call refused for want of an answer", "rule", p.Rule.ID, "traceId", id, "error", p.Error())
	}
	return encode(refusal(d, p, id, c.extensions.text(allowExtension)))
}
