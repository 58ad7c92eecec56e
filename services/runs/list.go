package runs

import (
	"cmp"
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
	"hangar.io/glidepath/services/runs/tekton"
)

// query is a list of runs that a call asks for.
type query struct {
	scope  calls.Scope // zero for the fleet
	hours  int         // how far back
	limit  int
	full   bool // with their objects
	strict bool // a TaskRun that cannot be read is not left out, and ends the reading
	placed bool // with their namespaces
}

// list gives the newest finished runs of a query.
func (s *server) list(ctx context.Context, q query) (*document, error) {
	return s.documents.get(ctx, listPlace(q), func(ctx context.Context, w io.Writer) (time.Duration, error) {
		if q.full {
			done, err := s.heavy.begin(ctx, s.wait/2)
			if err != nil {
				return 0, err
			}
			defer done()
		}
		found, err := s.read(ctx, q)
		switch {
		case err != nil:
			return 0, err
		case q.full:
			return listAge, writeFullRows(w, found)
		default:
			return listAge, writeRows(w, found)
		}
	})
}

// read reads the newest finished runs of a query.
func (s *server) read(ctx context.Context, q query) ([]listed, error) {
	window, err := s.window(ctx, q)
	if err != nil {
		return nil, err
	}
	found, err := s.newest(ctx, q, window)
	if err != nil || !q.full {
		return found, err
	}
	return found, s.attachTasks(ctx, q, found)
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
	name    string       // of the PipelineRun, in its Result
	run     packed       // of a full list
	tasks   []listedTask // likewise, in the order of their creation
	going   bool         // one of the tasks has not finished
}

type listedTask struct {
	created time.Time
	name    string
	object  packed
}

// newest reads the newest finished runs, and nothing past the last of them that
// there can be.
func (s *server) newest(ctx context.Context, q query, in window) ([]listed, error) {
	namespace := q.scope.Namespace
	if namespace == "" {
		namespace = "-"
	}
	read := s.archive.PipelineRunRows
	if q.full {
		read = s.archive.PipelineRuns
	}
	found := latest{most: q.limit}
	for rec, err := range read(ctx, namespace, in.since) {
		if err != nil {
			if s.passOver(ctx, err) {
				continue
			}
			return nil, err
		}
		if found.whole(rec.Stored) {
			break
		}
		if !in.shows(rec) || !found.wants(rec.Created) {
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
		one := listed{row: r.row, created: rec.Created, name: rec.Result() + "/" + r.object.Metadata.Name}
		if q.placed {
			one.row.Namespace, one.row.App = rec.Namespace(), appOf(rec.Namespace())
		}
		if q.full {
			one.run = pack(rec.Value)
		}
		found.add(one)
	}
	return found.all(), nil
}

// attachTasks gives the runs of a list their TaskRuns. These are read in one
// list, too, since the oldest of the runs: a TaskRun is never older than its run.
func (s *server) attachTasks(ctx context.Context, q query, runs []listed) error {
	if len(runs) == 0 {
		return nil
	}
	byUID, byName := make(map[string]int, len(runs)), make(map[string][]int, len(runs))
	for i, r := range runs {
		byUID[r.row.Result] = i
		byName[r.name] = append(byName[r.name], i)
	}
	for rec, err := range s.archive.TaskRuns(ctx, q.scope.Namespace, runs[len(runs)-1].created) {
		if err != nil {
			if !q.strict && s.passOver(ctx, err) {
				continue
			}
			return err
		}
		object, err := decode(rec)
		if err != nil {
			if !q.strict && s.passOver(ctx, err) {
				continue
			}
			return err
		}
		uid, name := object.Run()
		var of []int
		if i, ok := byUID[uid]; ok {
			of = []int{i}
		} else if uid == "" && name != "" {
			of = byName[rec.Result()+"/"+name]
		}
		for _, i := range of {
			if uid == "" && rec.Created.Before(runs[i].created) {
				continue // of an older run of the name, as in getRun
			}
			runs[i].tasks = append(runs[i].tasks, listedTask{rec.Created, object.Metadata.Name, pack(rec.Value)})
			runs[i].going = runs[i].going || object.Outcome() == tekton.Unfinished
		}
	}
	for i := range runs {
		slices.SortStableFunc(runs[i].tasks, func(a, b listedTask) int {
			return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name))
		})
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
