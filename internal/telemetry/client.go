package telemetry

import (
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport gives base with a client span for each request that is made for a
// call, named by name, and with the call's traceparent on it. A request that is
// made for no call, in the background, passes as it is. Headers and bodies are
// never recorded: they hold tokens.
func (t *Tracing) Transport(base http.RoundTripper, name func(*http.Request) string) http.RoundTripper {
	out := &transport{base: base}
	if t.Enabled() {
		out.recorded = otelhttp.NewTransport(base,
			otelhttp.WithTracerProvider(t.Provider()), otelhttp.WithPropagators(w3c), otelhttp.WithMeterProvider(noop.NewMeterProvider()),
			otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return name(r) }),
		)
	}
	return out
}

// WrapTransport gives Transport in the form in which client-go takes it.
func (t *Tracing) WrapTransport(name func(*http.Request) string) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper { return t.Transport(base, name) }
}

type transport struct {
	base     http.RoundTripper
	recorded http.RoundTripper // nil when nothing is exported
}

// RoundTrip sends one request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	sc := trace.SpanContextFromContext(ctx)
	switch {
	case !sc.IsValid():
		return t.base.RoundTrip(r)
	case sc.IsSampled() && t.recorded != nil:
		return t.recorded.RoundTrip(r)
	}
	r = r.Clone(ctx) // a RoundTripper changes no request (net/http)
	w3c.Inject(ctx, propagation.HeaderCarrier(r.Header))
	return t.base.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport below, whose idle
// connections it closes.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.base }
