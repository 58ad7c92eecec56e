package runs

import (
	"context"
	"io"
	"net/http"
	"time"

	"hangar.io/glidepath/internal/calls"
)

// GetRun answers one finished run with its objects.
func (s *server) GetRun(w http.ResponseWriter, r *http.Request, app, result string) {
	s.respond(w, r, func(ctx context.Context) (*document, error) {
		scope, err := calls.AppScope(r, app)
		if err != nil {
			return nil, err
		}
		if err := checkResult(result); err != nil {
			return nil, err
		}
		return s.run(ctx, scope, result)
	})
}

// run gives a finished run with its objects.
func (s *server) run(ctx context.Context, scope calls.Scope, result string) (*document, error) {
	return s.documents.get(ctx, runPlace(scope, result), func(ctx context.Context, w io.Writer) (time.Duration, error) {
		held := s.runs.hold()
		defer held.end()
		found, err := s.whole(ctx, scope, result, held)
		if err != nil {
			return 0, err
		}
		if err := writeListed(w, found); err != nil {
			return 0, err
		}
		_ = s.keepOutline(ctx, scope, &found) // a log that is asked for reads it else
		return s.age(found.created, found.settles(), runAge), nil
	})
}
