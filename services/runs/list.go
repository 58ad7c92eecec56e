package runs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/services/runs/results"
)

// query is a list of runs that a call asks for.
type query struct {
	scope  calls.Scope // zero for the fleet
	hours  int         // how far back
	limit  int
	full   bool // with their objects
	placed bool // with their namespaces
}

// writeList writes the newest finished runs of a query.
func (s *server) writeList(ctx context.Context, w io.Writer, q query) error {
	window, err := s.window(ctx, q)
	if err != nil {
		return err
	}
	found, err := s.newest(ctx, q, window)
	if err != nil {
		return err
	}
	if !q.full {
		return writeRows(w, found)
	}
	if err := s.attachTasks(ctx, q, found); err != nil {
		return err
	}
	return writeFullRows(w, found)
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
	if q.scope == (calls.Scope{}) {
		var err error
		w.floors, err = s.namespaces.all(ctx)
		return w, err
	}
	floor, err := s.namespaces.created(ctx, q.scope)
	if floor.After(w.since) {
		w.since = floor
	}
	return w, err
}

// listed is a run of a list, and with what it is shown.
type listed struct {
	row     row
	created time.Time
	name    string
	run     packed   // of a full list
	tasks   []packed // likewise, in the order of their creation
}

// newest reads the newest finished runs. The archive gives runs newest first, so
// nothing is read past the last one that is asked for.
func (s *server) newest(ctx context.Context, q query, in window) ([]listed, error) {
	namespace := q.scope.Namespace
	if namespace == "" {
		namespace = "-"
	}
	read := s.archive.PipelineRunRows
	if q.full {
		read = s.archive.PipelineRuns
	}
	var found []listed
	for rec, err := range read(ctx, namespace, in.since) {
		if err != nil {
			if s.passOver(ctx, err) {
				continue
			}
			return nil, err
		}
		if !in.shows(rec) {
			continue
		}
		r, finished, err := readRun(rec)
		if err != nil {
			s.passOver(ctx, err)
			continue
		}
		if !finished {
			continue
		}
		one := listed{row: r.row, created: rec.Created, name: r.object.Metadata.Name}
		if q.placed {
			one.row.Namespace, one.row.App = rec.Namespace(), appOf(rec.Namespace())
		}
		if q.full {
			one.run = pack(rec.Value)
		}
		if found = append(found, one); len(found) == q.limit {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b listed) int { return b.created.Compare(a.created) })
	return found, nil
}

// attachTasks gives the runs of a list their TaskRuns. These are read in one
// list, too, since the oldest of the runs: a TaskRun is never older than its run.
func (s *server) attachTasks(ctx context.Context, q query, runs []listed) error {
	if len(runs) == 0 {
		return nil
	}
	byUID, byName := make(map[string]int, len(runs)), make(map[string]int, len(runs))
	for i, r := range runs {
		byUID[r.row.Result], byName[r.name] = i, i
	}
	for rec, err := range s.archive.TaskRuns(ctx, q.scope.Namespace, runs[len(runs)-1].created) {
		if err != nil {
			if s.passOver(ctx, err) {
				continue
			}
			return err
		}
		object, err := decode(rec)
		if err != nil {
			s.passOver(ctx, err)
			continue
		}
		uid, name := object.Run()
		i, ok := byUID[uid]
		if uid == "" {
			i, ok = byName[name]
		}
		if ok {
			runs[i].tasks = append(runs[i].tasks, pack(rec.Value))
		}
	}
	for i := range runs {
		slices.Reverse(runs[i].tasks) // they came newest first
	}
	return nil
}

// passOver says whether an error is about one record alone. A list is answered
// without it: else one record that nobody can read would take away the list for
// as long as it is kept.
func (s *server) passOver(ctx context.Context, err error) bool {
	if !errors.Is(err, results.ErrBadRecord) {
		return false
	}
	s.badRecords.Inc()
	slog.WarnContext(ctx, "a record of the archive cannot be read, and is left out of a list", "error", err)
	return true
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
