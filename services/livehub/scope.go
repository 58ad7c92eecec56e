package livehub

import (
	"net/http"

	"hangar.io/glidepath/internal/calls"
)

// scope is whose objects a call is about: one namespace, or the whole fleet
// when it is zero.
type scope struct {
	// namespace and uid are the namespace's name and UID. What is kept is kept
	// by UID: an app that is made again under its name inherits nothing.
	namespace, uid string
}

// key names the scope where what is read of it is kept.
func (s scope) key() string { return calls.Scope{Namespace: s.namespace, UID: s.uid}.Key() }

// appScope gives the scope of a call about the app in its path.
func appScope(r *http.Request, app string) (scope, error) {
	s, err := calls.AppScope(r, app)
	return scope{namespace: s.Namespace, uid: s.UID}, err
}

// fleetScope gives the scope of a call about the fleet, or about the one app
// that its query names.
func fleetScope(r *http.Request) (scope, error) {
	s, err := calls.FleetScope(r)
	return scope{namespace: s.Namespace, uid: s.UID}, err
}
