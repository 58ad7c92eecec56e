// Package self answers the two operations that are about authorization itself:
// whoami and getContract. It is a backend like any other: it takes nothing but
// the identity that authz signed for it.
package self

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/api/authzapi"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/telemetry"
)

// Backend is the name of this backend: the audience of its identities.
const Backend = "authz"

// Capabilities says what a caller may call about an app; decision.Capabilities
// is one. Its error is an answer to the caller.
type Capabilities interface {
	Of(context.Context, decision.Standing, string) (decision.Capable, error)
}

// NewHandler serves the operations whose backend this is. Every other request,
// and one that did not pass the edge, is 401.
func NewHandler(v *identity.Verifier, operations []api.Operation, may Capabilities, tracing *telemetry.Tracing) http.Handler {
	ids := map[string]string{}
	for _, op := range operations {
		if op.Backend == Backend {
			ids[op.Method+" "+op.Path] = op.ID
		}
	}
	op := func(r *http.Request) string { return ids[r.Method+" "+r.URL.Path] }
	return identity.Require(v, op, calls.Traced(tracing, authzapi.Handler(server{contract: api.Contract(), may: may})))
}

// server implements the generated interface.
type server struct {
	contract []byte
	may      Capabilities
}

var _ authzapi.ServerInterface = server{}

// GetContract answers the built contract, byte for byte.
func (s server) GetContract(w http.ResponseWriter, _ *http.Request) {
	write(w, s.contract)
}

// Whoami answers who the gateway takes the caller to be and, where it names an
// app, what it may call about that app.
func (s server) Whoami(w http.ResponseWriter, r *http.Request) {
	c, ok := identity.FromContext(r.Context())
	if !ok || c.Who == nil {
		problem.Write(w, r, errors.New("whoami without the caller's facts in its identity"))
		return
	}
	answer := authzapi.Identity{
		Username: c.Subject, Groups: list(c.Who.Groups), Kind: authzapi.IdentityKind(c.Who.Kind),
		Delegate: c.Who.Delegate, OnBehalfOf: c.OnBehalfOf, Audiences: list(c.Who.Audiences),
	}
	if c.Who.App != "" {
		if err := s.about(r.Context(), c, &answer); err != nil {
			problem.Write(w, r, err)
			return
		}
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		problem.Write(w, r, err)
		return
	}
	write(w, raw)
}

// about adds what the caller may call about the app that it asks about.
func (s server) about(ctx context.Context, c *identity.Claims, answer *authzapi.Identity) error {
	can, err := s.may.Of(ctx, decision.Standing{
		Caller: authn.Restore(authn.Facts{
			Username: c.Subject, UID: c.Who.UID, Groups: c.Who.Groups, Extra: c.Who.Extra, Audiences: c.Who.Audiences,
		}, authn.Kind(c.Who.Kind)),
		Delegate: c.Who.Delegate, OnBehalfOf: c.OnBehalfOf,
	}, c.Who.App)
	if err != nil {
		return err
	}
	answer.App, answer.Namespace = c.Who.App, can.Namespace
	for _, one := range can.Operations {
		out := authzapi.Capability{Op: one.Operation.ID, Tier: authzapi.Tier(one.Operation.Tier), Allowed: one.Refusal == nil}
		if one.Refusal != nil {
			body := one.Refusal.Body("")
			out.Rule, out.Hint = body.Rule, body.Hint
		}
		answer.Operations = append(answer.Operations, out)
	}
	return nil
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
