package livehub

import (
	"errors"
	"net/http"

	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
)

// scope is whose objects a call is about: one namespace, or the whole fleet
// when it is zero. Only the functions below make one.
type scope struct {
	// namespace and uid are the namespace's name and UID. What is kept is kept
	// by UID: an app that is made again under its name inherits nothing.
	namespace, uid string
}

// key names the scope where what is read of it is kept.
func (s scope) key() string {
	if s == (scope{}) {
		return "fleet"
	}
	return s.uid
}

// appScope gives the scope of a call about the app in its path.
func appScope(r *http.Request, app string) (scope, error) {
	claims, err := claimsOf(r)
	if err != nil {
		return scope{}, err
	}
	if claims.App != app {
		return scope{}, foreign("an identity for another app")
	}
	return namespaceOf(claims)
}

// fleetScope gives the scope of a call about the fleet, or about the one app
// that its query names.
func fleetScope(r *http.Request) (scope, error) {
	claims, err := claimsOf(r)
	if err != nil {
		return scope{}, err
	}
	query := r.URL.Query()
	if query.Has("app") != (claims.App != "") || query.Get("app") != claims.App {
		return scope{}, foreign("an identity for another scope")
	}
	if claims.App == "" {
		return scope{}, nil
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
func namespaceOf(claims *identity.Claims) (scope, error) {
	if claims.Namespace == "" || claims.NamespaceUID == "" {
		return scope{}, foreign("an identity for an app without its namespace")
	}
	return scope{namespace: claims.Namespace, uid: claims.NamespaceUID}, nil
}

// foreign refuses a call whose identity was not made for it. The edge makes no
// such call.
func foreign(cause string) error {
	return problem.New(problem.EdgeUnauthorized, "").WithCause(errors.New(cause))
}
