// Package self answers the two operations that are about authorization itself:
// whoami and getContract. It is a backend like any other: it takes nothing but
// the identity that authz signed for it.
package self

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/api/authzapi"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
)

// Backend is the name of this backend: the audience of its identities.
const Backend = "authz"

// NewHandler serves the operations whose backend this is. Every other request,
// and one that did not pass the edge, is 401; but one that calls itself gRPC is
// 400, whatever it is: the edge sends all of those here, since its own answers
// to them would be gRPC's.
func NewHandler(v *identity.Verifier, operations []api.Operation) http.Handler {
	ids := map[string]string{}
	for _, op := range operations {
		if op.Backend == Backend {
			ids[op.Method+" "+op.Path] = op.ID
		}
	}
	op := func(r *http.Request) string { return ids[r.Method+" "+r.URL.Path] }
	return refuseGRPC(identity.Require(v, op, authzapi.Handler(server{contract: api.Contract()})))
}

func refuseGRPC(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			problem.Write(w, r, problem.New(problem.EdgeBadRequest, "this API is not served as gRPC").
				WithHint("send another Content-Type than application/grpc, or none"))
			return
		}
		next.ServeHTTP(w, r)
	})
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
