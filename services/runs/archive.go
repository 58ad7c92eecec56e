package runs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"time"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/results"
	"hangar.io/glidepath/services/runs/tekton"
)

// archive is where finished runs are: *results.Client.
type archive interface {
	PipelineRuns(ctx context.Context, namespace string, since time.Time) iter.Seq2[results.Record, error]
	PipelineRunRows(ctx context.Context, namespace string, since time.Time) iter.Seq2[results.Record, error]
	TaskRuns(ctx context.Context, namespace string, since time.Time) iter.Seq2[results.Record, error]
	TaskRunsOf(ctx context.Context, namespace, result string) iter.Seq2[results.Record, error]
	PipelineRun(ctx context.Context, namespace, result string) (results.Record, error)
	Log(ctx context.Context, namespace, result, taskRunUID string) (io.ReadCloser, error)
}

// find reads the finished run with the given uid. One that is another
// namespace's, older than the namespace, or not finished is not found.
func (s *server) find(ctx context.Context, scope calls.Scope, result string) (run, error) {
	floor, err := s.namespaces.created(ctx, scope)
	if err != nil {
		return run{}, err
	}
	rec, err := s.archive.PipelineRun(ctx, scope.Namespace, result)
	if errors.Is(err, results.ErrNotFound) {
		return run{}, noRun()
	}
	if err != nil {
		return run{}, err
	}
	found, finished, err := readRun(rec)
	if err != nil {
		return run{}, err
	}
	if !finished || rec.Created.Before(floor) {
		return run{}, noRun()
	}
	return found, nil
}

func noRun() error {
	return problem.New(problem.NotFound, "no finished run of this app has this id").
		WithHint("a run that has not finished is live; ids are those that listRuns gives as result")
}

// whole reads a finished run with its TaskRuns.
func (s *server) whole(ctx context.Context, scope calls.Scope, result string) (run, []task, error) {
	found, err := s.find(ctx, scope, result)
	if err != nil {
		return run{}, nil, err
	}
	tasks, err := s.tasks(ctx, scope, found)
	return found, tasks, err
}

// settling is how long after its end all of a run is in the archive: its TaskRuns
// are stored one by one, and their logs apart.
const settling = 10 * time.Minute

// settled says whether what is archived of a finished run stays as it is. complete
// says whether all of its TaskRuns are archived as finished.
func (s *server) settled(r row, complete bool) bool {
	return complete && r.CompletionTime != nil && s.now().Sub(*r.CompletionTime) > settling
}

// age is for how long something of a finished run is answered: for its time, or
// for that of a list as long as the archive may have more of the run.
func (s *server) age(r row, complete bool, most time.Duration) time.Duration {
	if !s.settled(r, complete) {
		return listAge
	}
	return most
}

// complete says whether all TaskRuns of a run are archived as finished, those that
// the run names among them: a list of them that is short, or empty since its
// database failed, looks like any other.
func complete(of run, tasks []task) bool {
	missing := newNames(of.object.Status.TaskRuns())
	for _, t := range tasks {
		if t.object.Outcome() == tekton.Unfinished {
			return false
		}
		delete(missing, t.object.Metadata.Name)
	}
	return len(missing) == 0
}

func newNames(all []string) map[string]struct{} {
	names := make(map[string]struct{}, len(all))
	for _, name := range all {
		names[name] = struct{}{}
	}
	return names
}

// task is an archived TaskRun of a run.
type task struct {
	object *tekton.Object
	record results.Record
}

// eventID is the label of runs that an event started, and of their TaskRuns: all
// are archived in one Result of this name.
const eventID = "triggers.tekton.dev/triggers-eventid"

// homes are the Results that the TaskRuns of a run may be in: that of the run, and
// that of its uid where the run was made with the annotations of another, which put
// it into that one's Result. Its TaskRuns do not always have these annotations.
func homes(r run) []string {
	result := r.record.Result()
	if result == r.record.UID || result == r.object.Metadata.Labels[eventID] {
		return []string{result}
	}
	return []string{result, r.record.UID}
}

// tasks reads a run's TaskRuns, in the order of their creation.
func (s *server) tasks(ctx context.Context, scope calls.Scope, of run) ([]task, error) {
	var all []task
	for _, home := range homes(of) {
		for rec, err := range s.archive.TaskRunsOf(ctx, scope.Namespace, home) {
			if err != nil {
				return nil, err
			}
			object, err := decode(rec)
			if err != nil {
				return nil, err
			}
			// Runs that one event started are archived together. A run without a
			// uid in its TaskRuns is told by its name, which an older one may have had.
			uid, _ := object.Run()
			if object.BelongsTo(of.object.Metadata) && (uid != "" || !rec.Created.Before(of.record.Created)) {
				all = append(all, task{object, rec})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b task) int {
		return cmp.Or(a.record.Created.Compare(b.record.Created), cmp.Compare(a.object.Metadata.Name, b.object.Metadata.Name))
	})
	return all, nil
}
