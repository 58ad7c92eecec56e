// Package self answers the two operations that are about authorization itself:
// whoami and getContract. It is a backend like any other: it takes nothing but
// the identity that authz signed for it.
package self

import (
	"encoding/json"
	"errors"
	"net/http"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/api/authzapi"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/telemetry"
)

// Backend is the name of this backend: the audience of its identities.
const Backend = "authz"

// NewHandler serves the operations whose backend this is. Every other request,
// and one that did not pass the edge, is 401.
func NewHandler(v *identity.Verifier, operations []api.Operation, tracing *telemetry.Tracing) http.Handler {
	ids := map[string]string{}
	for _, op := range operations {
		if op.Backend == Backend {
			ids[op.Method+" "+op.Path] = op.ID
		}
	}
	op := func(r *http.Request) string { return ids[r.Method+" "+r.URL.Path] }
	return identity.Require(v, op, calls.Traced(tracing, authzapi.Handler(server{contract: api.Contract()})))
}

// server implements the generated interface.
type server struct{ contract []byte }

var _ authzapi.ServerInterface = server{}

// GetContract answers the built contract, byte for byte.
func (s server) GetContract(w http.ResponseWriter, _ *http.Request) {
	write(w, s.contract)
}

// Whoami answers who the gateway takes the caller to be.
func (server) Whoami(w http.ResponseWriter, r *http.Request) {
	c, ok := identity.FromContext(r.Context())
	if !ok || c.Who == nil {
		problem.Write(w, r, errors.New("whoami without the caller's facts in its identity"))
		return
	}
	raw, err := json.Marshal(authzapi.Identity{
		Username: c.Subject, Groups: list(c.Who.Groups), Kind: authzapi.IdentityKind(c.Who.Kind),
		Delegate: c.Who.Delegate, OnBehalfOf: c.OnBehalfOf, Audiences: list(c.Who.Audiences),
	})
	if err != nil {
		problem.Write(w, r, err)
		return
	}
	write(w, raw)
}

// list makes an empty list of none: the contract has no null.
func list(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

func write(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // the caller may be gone
}
