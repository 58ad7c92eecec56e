package livehub

import (
	"errors"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/podlog"
	"hangar.io/glidepath/internal/problem"
)

// explainLog says to a caller what kept a log from it. What the cluster and
// the node said stays in the logs.
func explainLog(name logName, err error) error {
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	p := problem.New(problem.SourceFailed, "the log could not be read")
	switch {
	case errors.Is(err, podlog.ErrGone):
		p = problem.New(problem.LiveNotFound, "")
	case errors.Is(err, podlog.ErrNoContainer):
		p = problem.Newf(problem.BadRequest, "the pod has no container %s", calls.Quoted(name.container)).
			WithHint("the container of a step is step-<step>")
	case errors.Is(err, podlog.ErrNotStarted):
		p = problem.Newf(problem.BadRequest, "container %s has not started", calls.Quoted(name.container)).
			WithHint("try again once it runs")
	case errors.Is(err, podlog.ErrSlow):
		p = problem.New(problem.SourceFailed, "the cluster did not give the log in time")
	}
	return p.WithCause(err)
}
