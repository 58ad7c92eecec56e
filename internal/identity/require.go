package identity

import (
	"net/http"

	"hangar.io/glidepath/internal/problem"
)

// Require lets only those calls through to next that carry a valid identity
// for exactly the operation that op names for the request ("" when the request
// is none of the backend's operations). Everything else is 401 GP-EDGE-401:
// what did not pass the edge does not get in.
//
// A write's identity is bound to its method, path and query besides.
func Require(v *Verifier, op func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claims, err := check(v, r, op(r))
		if err != nil {
			problem.Write(w, r, err)
			return
		}
		r.Header.Del(Header)
		next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), claims)))
	})
}

func check(v *Verifier, r *http.Request, op string) (*Claims, error) {
	refuse := problem.New(problem.EdgeUnauthorized, "")
	tokens := r.Header.Values(Header)
	if len(tokens) != 1 || op == "" {
		return nil, refuse
	}
	claims, err := v.Verify(tokens[0])
	if err != nil {
		return nil, refuse.WithCause(err)
	}
	if claims.Op != op {
		return nil, refuse
	}
	write := claims.Method != "" || claims.Tier != "T0"
	if write && (claims.Method != r.Method || claims.TargetHash != HashTarget(r.RequestURI)) {
		return nil, refuse
	}
	return claims, nil
}
