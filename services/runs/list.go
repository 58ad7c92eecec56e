package runs

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/results"
)

// query is a list of runs that a call asks for.
type query struct {
	scope  calls.Scope // zero for the fleet
	census *census     // of the fleet
	hours  int         // how far back
	limit  int
	full   bool // with their objects
	placed bool // with their namespaces
}

// list gives the newest finished runs of a query.
func (s *server) list(ctx context.Context, q query) (*document, error) {
	if q.scope == (calls.Scope{}) {
		var err error
		if q.census, err = s.namespaces.census(ctx); err != nil {
			return nil, err
		}
	}
	return s.documents.get(ctx, listPlace(q), func(ctx context.Context, w io.Writer) (time.Duration, error) {
		if q.full {
			return listAge, s.writeFullList(ctx, w, q)
		}
		found, _, err := s.read(ctx, q, nil)
		if err != nil {
			return 0, err
		}
		return listAge, writeRows(w, found)
	})
}

// writeFullList reads and writes a full list in its turn.
func (s *server) writeFullList(ctx context.Context, w io.Writer, q query) error {
	done, err := s.heavy.begin(ctx, q.scope.Key(), s.wait/2)
	if err != nil {
		return err
	}
	defer done()
	held := s.lists.hold()
	defer held.end()
	found, _, err := s.read(ctx, q, held)
	if errors.Is(err, answer.ErrTooLarge) {
		return problem.New(problem.SourceFailed, "the objects of these runs are more than is read at once").
			WithHint("ask for fewer, by limit or sinceHours, or for summaries").WithCause(err)
	}
	if err != nil {
		return err
	}
	return writeFullRows(w, found)
}

// read reads the newest finished runs of a query. whole is false when one of them
// may lack a TaskRun, which could not be read. The objects of a full one are held.
func (s *server) read(ctx context.Context, q query, held *holding) (found []listed, whole bool, err error) {
	window, err := s.window(ctx, q)
	if err != nil {
		return nil, false, err
	}
	found, err = s.newest(ctx, q, window, held)
	if err != nil || !q.full {
		return found, false, err
	}
	whole, err = s.attachTasks(ctx, q, found, held)
	return found, whole, err
}

// window says how far back a list goes.
type window struct {
	since  time.Time
	floors map[string]time.Time // by namespace; those of namespaces that are no more are missing
}

// shows says whether a record is in the window. A namespace shows nothing of one
// that had its name before.
func (w window) shows(r results.Record) bool {
	return !r.Created.Before(w.since) && !r.Created.Before(w.floors[r.Namespace()])
}

func (s *server) window(ctx context.Context, q query) (window, error) {
	w := window{since: s.now().Add(-time.Duration(q.hours) * time.Hour)}
	if q.census != nil {
		w.floors = q.census.made
		return w, nil
	}
	floor, err := s.namespaces.created(ctx, q.scope)
	if floor.After(w.since) {
		w.since = floor
	}
	return w, err
}

// appOf is the app whose runs are in a namespace, "" for a namespace that is no
// app's.
func appOf(namespace string) string {
	name, cicd := strings.CutSuffix(namespace, "-cicd")
	for _, prefix := range []string{"app-", "infra-"} {
		app, ok := strings.CutPrefix(name, prefix)
		if ok && cicd && len(validation.IsDNS1123Label(app)) == 0 {
			return app
		}
	}
	return ""
}
