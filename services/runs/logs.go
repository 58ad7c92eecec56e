package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/results"
)

// logName names the log of a TaskRun of a finished run.
type logName struct {
	scope           calls.Scope
	result, taskRun string
}

func newLogName(r *http.Request, app, result, taskRun string) (logName, error) {
	scope, err := calls.AppScope(r, app)
	if err != nil {
		return logName{}, err
	}
	return logName{scope, result, taskRun}, errors.Join(checkResult(result), checkTaskRun(taskRun))
}

// GetRunLogs answers the log of one TaskRun of a finished run.
func (s *server) GetRunLogs(w http.ResponseWriter, r *http.Request, app, result, taskRun string) {
	// A browser must not take a log for anything but text.
	w.Header().Set("X-Content-Type-Options", "nosniff")
	name, err := newLogName(r, app, result, taskRun)
	if err != nil {
		refuse(w, r, explain(err))
		return
	}
	switch log, err := s.log(r.Context(), name); {
	case err != nil:
		refuse(w, r, explain(err))
	case log.ContentType() == tooLarge.contentType:
		s.passLog(w, r, name)
	default:
		s.send(w, r, log)
	}
}

// log gives a log, or the document that stands for one that is too large to be
// kept.
func (s *server) log(ctx context.Context, name logName) (*document, error) {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	return s.documents.get(ctx, logPlace(name), func(ctx context.Context, w io.Writer) (time.Duration, error) {
		log, age, err := s.openLog(ctx, name)
		if err != nil {
			return 0, err
		}
		defer func() { _ = log.Close() }() // it is read to its end, or not an answer
		if _, err := io.Copy(w, log); err != nil {
			return age, fmt.Errorf("copying a log: %w", err)
		}
		return age, nil
	})
}

// openLog opens the archived log of a run's TaskRun, and says for how long it may
// be kept. Logs are archived apart from their runs, and may be so in pieces.
func (s *server) openLog(ctx context.Context, name logName) (io.ReadCloser, time.Duration, error) {
	run, err := s.outline(ctx, name.scope, name.result, func(o outline) bool { return o.at(name.taskRun) >= 0 })
	if err != nil {
		return nil, 0, err
	}
	i := run.at(name.taskRun)
	if i < 0 {
		return nil, 0, problem.New(problem.NotFound, "the run has no TaskRun of this name").
			WithHint("getRun gives the run's TaskRuns")
	}
	log, err := s.archive.Log(ctx, name.scope.Namespace, run.TaskRuns[i].Result, run.TaskRuns[i].UID)
	if errors.Is(err, results.ErrNoLog) {
		return nil, 0, problem.New(problem.LogNotFound, "").WithCause(err)
	}
	return log, s.age(run.Created, run.Settles, logAge), err
}
