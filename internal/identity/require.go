package identity

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"hangar.io/glidepath/internal/problem"
)

// Require lets only those calls through to next that carry a valid identity
// for exactly the operation that op names for the request ("" when the request
// is none of the backend's operations) and for the app that the request names,
// if it may name one. Everything else is 401 GP-EDGE-401:
// what did not pass the edge does not get in.
//
// A write's identity is bound to its method, path and query besides, and is good
// for one call. When nobody can tell whether it was used before, the answer is
// 502 GP-API-502.
func Require(v *Verifier, op func(*http.Request) string, next http.Handler) http.Handler {
	apps := appPlaces()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claims, err := check(v, r, op(r), apps)
		if err != nil {
			problem.Write(w, r, err)
			return
		}
		r.Header.Del(Header)
		next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), claims)))
	})
}

func check(v *Verifier, r *http.Request, op string, apps map[string]appPlace) (*Claims, error) {
	refuse := problem.New(problem.EdgeUnauthorized, "")
	tokens := r.Header.Values(Header)
	if len(tokens) != 1 || op == "" {
		return nil, refuse
	}
	claims, err := v.Verify(tokens[0])
	if err != nil {
		return nil, unverified(r.Context(), err)
	}
	if claims.Op != op {
		return nil, refuse
	}
	if place, ok := apps[op]; ok && !place.names(r, claims.App) {
		return nil, refuse
	}
	if !claims.write() {
		return claims, nil
	}
	if claims.Method != r.Method || claims.TargetHash != HashTarget(r.RequestURI) {
		return nil, refuse
	}
	// Last, so that a call that is refused anyway uses nothing up.
	switch err := v.use(r.Context(), claims); {
	case errors.Is(err, errUsed):
		return nil, problem.New(problem.EdgeUnauthorized, "this call was made before").WithCause(err)
	case err != nil:
		return nil, problem.New(problem.SourceFailed, "nobody can tell whether this call was made before").WithCause(err)
	}
	return claims, nil
}

// unverified is the answer to an identity that was not verified. One that authz
// signed for another time is nobody's attempt to get in, most likely: whoever
// runs the gateway must hear that its clocks differ, since it refuses everybody.
func unverified(ctx context.Context, err error) error {
	t, ok := errors.AsType[*timeError](err)
	if !ok {
		return problem.New(problem.EdgeUnauthorized, "").WithCause(err)
	}
	slog.WarnContext(ctx, "identity refused for its time: the clocks of authz and of this process differ, or an old identity was sent again",
		"rule", problem.EdgeUnauthorized.ID, "issued", t.issued, "expires", t.expires, "leeway", Leeway.String())
	return problem.New(problem.EdgeUnauthorized, "the identity of this call is not of this time").
		WithHint("the clocks of the edge and of the backend must agree").WithCause(err)
}
