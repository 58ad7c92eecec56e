package identity

import (
	"net/http"
	"slices"
	"strings"

	"hangar.io/glidepath/api"
)

// appPlace is where a request of an operation names its app.
type appPlace struct {
	// segment of the path, counted from 0; below 0 there is none.
	segment int
	// query says that the query may name one.
	query bool
}

// appPlaces gives the place for every operation that is about an app, or may be.
func appPlaces() map[string]appPlace {
	places := map[string]appPlace{}
	for _, op := range api.Operations() {
		switch op.Scope {
		case api.ScopeApp:
			places[op.ID] = appPlace{segment: slices.Index(strings.Split(op.Path, "/"), "{app}")}
		case api.ScopeFleet:
			places[op.ID] = appPlace{segment: -1, query: true}
		case api.ScopeSelf: // about the caller, whatever the query says
		}
	}
	return places
}

// names says whether a request is about exactly this app, empty for none.
func (p appPlace) names(r *http.Request, app string) bool {
	if p.query {
		// One that is sent twice is for the backend to refuse.
		sent := r.URL.Query()["app"]
		return (app != "") == (len(sent) > 0) && !slices.ContainsFunc(sent, func(s string) bool { return s != app })
	}
	segments := strings.Split(r.URL.EscapedPath(), "/")
	return app != "" && p.segment > 0 && p.segment < len(segments) && segments[p.segment] == app
}
