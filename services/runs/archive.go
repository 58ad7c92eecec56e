package runs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
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
// namespace's, older than the namespace or than runs are shown, or not finished is
// not found.
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
	if !finished || rec.Created.Before(floor) || s.left(rec.Created) < 0 {
		return run{}, noRun()
	}
	return found, nil
}

func noRun() error {
	return problem.New(problem.NotFound, "no finished run of this app has this id").
		WithHint("a run that has not finished is live, one of more than 30 days is gone; ids are those that listRuns gives as result")
}

// left is for how long more something that was made at a time is shown.
func (s *server) left(created time.Time) time.Duration {
	return created.Add(results.MaxWindow).Sub(s.now())
}

// whole reads a finished run with its TaskRuns, in the order of their creation. Their
// objects are held.
func (s *server) whole(ctx context.Context, scope calls.Scope, result string, held *holding) (listed, error) {
	found, err := s.find(ctx, scope, result)
	if err != nil {
		return listed{}, err
	}
	one := query{full: true}.listed(found)
	if one.run, err = held.pack(found.record.Value); err != nil {
		return listed{}, err
	}
	found.record.Value = nil
	for t, err := range s.tasks(ctx, scope, found) {
		if err != nil {
			return listed{}, err
		}
		whole := newListedTask(t.object, t.record)
		if whole.object, err = held.pack(t.record.Value); err != nil {
			return listed{}, err
		}
		one.tasks = append(one.tasks, whole)
	}
	one.arrange()
	return one, nil
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
// that of its event or its uid where the run was made with the annotations of
// another, which put it into that one's Result. Its TaskRuns do not always have
// these annotations.
func homes(r run) []string {
	result, own := r.record.Result(), cmp.Or(r.object.Metadata.Labels[eventID], r.record.UID)
	if result == own {
		return []string{result}
	}
	return []string{result, own}
}

// tasks reads a run's TaskRuns, in no order.
func (s *server) tasks(ctx context.Context, scope calls.Scope, of run) iter.Seq2[task, error] {
	return func(yield func(task, error) bool) {
		for _, home := range homes(of) {
			for rec, err := range s.archive.TaskRunsOf(ctx, scope.Namespace, home) {
				var object *tekton.Object
				if err == nil {
					object, err = decode(rec)
				}
				if err != nil {
					yield(task{}, err)
					return
				}
				if of.made(object, rec) && !yield(task{object, rec}, nil) {
					return
				}
			}
		}
	}
}

// made says whether a TaskRun of one of its Results is the run's: runs that one event
// started are archived together. A run without a uid in its TaskRuns is told by its
// name, which an older one may have had.
func (r run) made(object *tekton.Object, rec results.Record) bool {
	uid, _ := object.Run()
	return object.BelongsTo(r.object.Metadata) && (uid != "" || !rec.Created.Before(r.record.Created))
}
