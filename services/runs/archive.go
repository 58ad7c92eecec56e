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

// task is an archived TaskRun of a run.
type task struct {
	object *tekton.Object
	record results.Record
}

// tasks reads a run's TaskRuns, in the order of their creation.
func (s *server) tasks(ctx context.Context, scope calls.Scope, of run) ([]task, error) {
	var all []task
	for rec, err := range s.archive.TaskRunsOf(ctx, scope.Namespace, of.record.Result()) {
		if err != nil {
			return nil, err
		}
		object, err := decode(rec)
		if err != nil {
			return nil, err
		}
		// Runs that one event started are archived together.
		if object.BelongsTo(of.object.Metadata) {
			all = append(all, task{object, rec})
		}
	}
	slices.SortStableFunc(all, func(a, b task) int {
		return cmp.Or(a.record.Created.Compare(b.record.Created), cmp.Compare(a.object.Metadata.Name, b.object.Metadata.Name))
	})
	return all, nil
}
