package telemetry

import (
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Handler gives next with a server span for each call, named by name. The span
// is in the context of the request, for next to add to. A 5xx marks it as
// failed, a 4xx does not.
func (t *Tracing) Handler(next http.Handler, name func(*http.Request) string) http.Handler {
	recorded := next
	if t.Enabled() {
		recorded = otelhttp.NewHandler(next, "",
			otelhttp.WithTracerProvider(t.Provider()), otelhttp.WithPropagators(w3c), otelhttp.WithMeterProvider(noop.NewMeterProvider()),
			otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return name(r) }),
		)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := Join(r.Context(), propagation.HeaderCarrier(r.Header))
		if sc := trace.SpanContextFromContext(ctx); !t.Enabled() || (sc.IsValid() && !sc.IsSampled()) {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		recorded.ServeHTTP(w, r)
	})
}
