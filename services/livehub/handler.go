package livehub

import (
	"net/http"

	"hangar.io/glidepath/api/livehubapi"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/telemetry"
)

// backend is the name of this backend in the contract and in identities.
const backend = "livehub"

// newHandler serves s to calls whose identity v takes. ready says why the
// process should get no calls yet.
func newHandler(s livehubapi.ServerInterface, v *identity.Verifier, ready func() error, tracing *telemetry.Tracing) http.Handler {
	return calls.NewHandler(calls.HandlerConfig{
		Backend: backend, Verifier: v, Ready: ready, Tracing: tracing,
		Routes: func(mux *http.ServeMux) {
			livehubapi.HandlerWithOptions(s, livehubapi.StdHTTPServerOptions{BaseRouter: mux, ErrorHandlerFunc: badParameter})
		},
	})
}
