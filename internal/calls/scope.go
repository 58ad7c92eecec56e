package calls

import (
	"errors"
	"net/http"

	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
)

// Scope is whose objects a call is about: one namespace, or the whole fleet
// when it is zero. It comes from AppScope or FleetScope, and from nowhere else.
type Scope struct {
	// Namespace and UID are the namespace's name and UID. What is kept is kept
	// by UID: an app that is made again under its name inherits nothing.
	Namespace, UID string
}

// Key names the scope where what is read of it is kept.
func (s Scope) Key() string {
	if s == (Scope{}) {
		return "fleet"
	}
	return s.UID
}

// AppScope gives the scope of a call about the app in its path.
func AppScope(r *http.Request, app string) (Scope, error) {
	claims, err := claimsOf(r)
	if err != nil {
		return Scope{}, err
	}
	if claims.App != app {
		return Scope{}, foreign("an identity for another app")
	}
	return namespaceOf(claims)
}

// FleetScope gives the scope of a call about the fleet, or about the one app
// that its query names.
func FleetScope(r *http.Request) (Scope, error) {
	claims, err := claimsOf(r)
	if err != nil {
		return Scope{}, err
	}
	query := r.URL.Query()
	if query.Has("app") != (claims.App != "") || query.Get("app") != claims.App {
		return Scope{}, foreign("an identity for another scope")
	}
	if claims.App == "" {
		return Scope{}, nil
	}
	return namespaceOf(claims)
}

func claimsOf(r *http.Request) (*identity.Claims, error) {
	claims, ok := identity.FromContext(r.Context())
	if !ok {
		return nil, foreign("no identity")
	}
	return claims, nil
}

// namespaceOf wants both names of the namespace: without one it would be the
// fleet, or any namespace that had the name.
func namespaceOf(claims *identity.Claims) (Scope, error) {
	if claims.Namespace == "" || claims.NamespaceUID == "" {
		return Scope{}, foreign("an identity for an app without its namespace")
	}
	return Scope{Namespace: claims.Namespace, UID: claims.NamespaceUID}, nil
}

// foreign refuses a call whose identity was not made for it. The edge makes no
// such call.
func foreign(cause string) error {
	return problem.New(problem.EdgeUnauthorized, "").WithCause(errors.New(cause))
}
