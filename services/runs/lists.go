package runs

import (
	"context"
	"net/http"

	"hangar.io/glidepath/api/runsapi"
	"hangar.io/glidepath/internal/calls"
)

// ListRuns answers the finished runs of an app, newest first.
func (s *server) ListRuns(w http.ResponseWriter, r *http.Request, app string, params runsapi.ListRunsParams) {
	s.respond(w, r, func(ctx context.Context) (*document, error) {
		scope, err := calls.AppScope(r, app)
		if err != nil {
			return nil, err
		}
		q, err := newQuery(scope, params.SinceHours, params.Limit)
		if err != nil {
			return nil, err
		}
		if q.full, err = fullView(params.View); err != nil {
			return nil, err
		}
		return s.list(ctx, q)
	})
}

// ListFleetRuns answers the finished runs of all namespaces, or of one app, each
// with its namespace.
func (s *server) ListFleetRuns(w http.ResponseWriter, r *http.Request, params runsapi.ListFleetRunsParams) {
	s.respond(w, r, func(ctx context.Context) (*document, error) {
		scope, err := calls.FleetScope(r)
		if err != nil {
			return nil, err
		}
		q, err := newQuery(scope, params.SinceHours, params.Limit)
		if err != nil {
			return nil, err
		}
		q.placed = true
		return s.list(ctx, q)
	})
}
