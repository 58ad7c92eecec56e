package calls

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/telemetry"
)

// Traced gives next with a span for each call, named for its operation and with
// what its identity says. It stands behind identity.Require, so that whoever
// goes round the edge makes no spans.
func Traced(t *telemetry.Tracing, next http.Handler) http.Handler {
	described := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if span := trace.SpanFromContext(r.Context()); span.IsRecording() {
			span.SetAttributes(attributes(r)...)
		}
		next.ServeHTTP(w, r)
	})
	return t.Handler(described, func(r *http.Request) string {
		claims, _ := identity.FromContext(r.Context())
		if claims == nil {
			return r.Method
		}
		return claims.Op
	})
}

// attributes are those of the call's span at the edge. A call that has an
// identity was allowed.
func attributes(r *http.Request) []attribute.KeyValue {
	claims, ok := identity.FromContext(r.Context())
	if !ok {
		return nil
	}
	return telemetry.Call{
		Op: claims.Op, Tier: claims.Tier, App: claims.App, Decision: "allow", Caller: claims.Subject, OnBehalfOf: claims.OnBehalfOf,
	}.Attributes()
}

// ContractInfo gives the metric that names the contract that the process
// serves.
func ContractInfo() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "glidepath_api_contract_info", Help: "Always 1: the contract that this process serves.",
		ConstLabels: prometheus.Labels{"contract_version": strconv.Itoa(api.ContractVersion)},
	})
	info.Set(1)
	return info
}
