package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/results"
)

// GetRunLogs answers the log of one TaskRun of a finished run.
func (s *server) GetRunLogs(w http.ResponseWriter, r *http.Request, app, result, taskRun string) {
	// A browser must not take a log for anything but text.
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.respond(w, r, func(ctx context.Context) (*document, error) {
		scope, err := calls.AppScope(r, app)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(checkResult(result), checkTaskRun(taskRun)); err != nil {
			return nil, err
		}
		return s.documents.get(ctx, logPlace(scope, result, taskRun), func(ctx context.Context, w io.Writer) (time.Duration, error) {
			return s.writeLog(ctx, w, scope, result, taskRun)
		})
	})
}

// writeLog writes the archived log of the run's TaskRun. Logs are archived apart
// from their runs, and may be so in pieces.
func (s *server) writeLog(ctx context.Context, w io.Writer, scope calls.Scope, result, taskRun string) (time.Duration, error) {
	found, tasks, err := s.whole(ctx, scope, result)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(tasks, func(t task) bool { return t.object.Metadata.Name == taskRun })
	if i < 0 {
		return 0, problem.New(problem.NotFound, "the run has no TaskRun of this name").
			WithHint("getRun gives the run's TaskRuns")
	}
	log, err := s.archive.Log(ctx, scope.Namespace, tasks[i].record.Result(), tasks[i].record.UID)
	if errors.Is(err, results.ErrNoLog) {
		return 0, problem.New(problem.LogNotFound, "").WithCause(err)
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }() // it is read to its end, or not an answer
	if _, err := io.Copy(w, log); err != nil {
		return 0, fmt.Errorf("copying a log: %w", err)
	}
	return s.age(found.row, allEnded(tasks), logAge), nil
}
