package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"hangar.io/glidepath/internal/outbound"
)

// What bounds the spans of a process. They wait in memory, encoded, some
// hundred bytes each; what does not fit is dropped, never waited for.
const (
	queueBatches = 8 // full ones that wait, beside the one that is sent
	batchSpans   = 512
	batchBytes   = 1 << 20
	batchDelay   = time.Second
	exportTime   = 5 * time.Second
	flushTime    = 3 * time.Second
	maxTextSize  = 1024
)

// spanLimits bound one span.
var spanLimits = sdktrace.SpanLimits{
	AttributeValueLengthLimit: maxTextSize, AttributeValueDepthLimit: 4,
	AttributeCountLimit: 64, EventCountLimit: 32, LinkCountLimit: 32,
	AttributePerEventCountLimit: 16, AttributePerLinkCountLimit: 16,
}

// scope names what makes the spans.
const scope = "hangar.io/glidepath"

// Options are what a process gives to its tracing. All but Client is required.
type Options struct {
	TraceConfig
	// Service names the process in spans, such as glidepath-authz.
	Service string
	// Metrics counts the spans.
	Metrics prometheus.Registerer
	// Client reaches the collector by its Transport; nil is one of its own that
	// trusts the authorities of OTLPCAFile and goes by the environment's proxies.
	// Redirects are never followed.
	Client *http.Client
}

// Tracing makes the spans of a process. The zero value makes none, and passes
// traces on. It is safe for concurrent use.
type Tracing struct {
	provider *sdktrace.TracerProvider // nil when nothing is exported
	tracer   trace.Tracer
	idle     func() // closes the idle connections to the collector
}

// NewTracing gives the tracing of a process. Without an endpoint it starts
// nothing. Whoever makes one calls Shutdown when the calls are over.
func NewTracing(ctx context.Context, o Options) (*Tracing, error) {
	if o.OTLPEndpoint == "" {
		return &Tracing{}, nil
	}
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("setting up traces: %w", err)
	}
	if o.Service == "" || o.Metrics == nil {
		return nil, errors.New("setting up traces: a service or registerer is missing")
	}
	client, err := o.collectorClient()
	if err != nil {
		return nil, fmt.Errorf("setting up traces: %w", err)
	}
	exporter, err := newExporter(ctx, o.OTLPEndpoint, client, describe(o.Service), o.Metrics)
	if err != nil {
		return nil, fmt.Errorf("setting up traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.TraceRatio))),
		sdktrace.WithRawSpanLimits(spanLimits),
		sdktrace.WithSpanProcessor(newBatches(exporter)),
	)
	return &Tracing{provider: provider, tracer: provider.Tracer(scope), idle: client.CloseIdleConnections}, nil
}

// collectorClient gives a client that sends spans to the endpoint and nowhere
// else.
func (o Options) collectorClient() (*http.Client, error) {
	var c http.Client
	if o.Client != nil {
		c = *o.Client
	} else {
		source, err := outbound.NewSource("the OTLP collector", outbound.Options{CAFile: o.OTLPCAFile})
		if err != nil {
			return nil, err
		}
		proxies, err := outbound.ProxiesFromEnvironment()
		if err != nil {
			return nil, err
		}
		c.Transport = source.Transport(proxies, outbound.Bounds{Header: exportTime, Connections: 2})
	}
	c.Timeout = exportTime
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c, nil
}

// describe says which process the spans are of. The instance is a new one with
// each start, as two processes can share a host's name.
func describe(service string) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		attribute.String("service.name", service),
		attribute.String("service.instance.id", uuid.NewString()),
	}
	if host, err := os.Hostname(); err == nil {
		attrs = append(attrs, attribute.String("host.name", host))
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		attrs = append(attrs, attribute.String("service.version", b.Main.Version))
	}
	return attrs
}

// Enabled says whether spans are exported.
func (t *Tracing) Enabled() bool { return t.provider != nil }

// Start begins a span if it is going to be exported: tracing is on, and the
// trace that ctx carries is sampled or none, where the ratio decides. Otherwise
// it gives ctx as it is, which still carries the trace, and a span that records
// nothing; that costs next to nothing.
func (t *Tracing) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t.provider == nil {
		return ctx, noop.Span{}
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() && !sc.IsSampled() {
		return ctx, noop.Span{}
	}
	return t.tracer.Start(ctx, name, opts...)
}

// Shutdown exports the spans that wait and ends, within a few seconds even if
// the collector is away, and also when ctx has ended. Spans that end later are
// dropped.
func (t *Tracing) Shutdown(ctx context.Context) {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		slog.WarnContext(ctx, "the last spans are not exported", "error", err)
	}
	t.idle()
}
