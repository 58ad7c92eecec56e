package livehub

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/paging"
	"hangar.io/glidepath/internal/problem"
)

// server answers the operations. It implements livehubapi.ServerInterface.
type server struct {
	hub    *hub
	logs   *logs
	tokens *paging.Tokens
	wait   time.Duration // how long a call waits for its lists
	live   *streams
	back   *resumption
}

// close ends what is done for calls, when there are none any more.
func (s *server) close() {
	s.live.feeds.close()
	s.hub.cache.Close()
}

// respond gives a call the answer that find comes to within the time that a
// call may wait.
func (s *server) respond(w http.ResponseWriter, r *http.Request, find func(ctx context.Context) (*answer.Answer, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), s.wait)
	defer cancel()
	a, err := find(ctx)
	if err == nil {
		a.Write(w, r)
		return
	}
	if r.Context().Err() != nil {
		// The caller left. Nobody must take an empty answer for an empty
		// list, so there is none.
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way of not answering
	}
	problem.Write(w, r, asProblem(err))
}

// asProblem says to a caller what kept its lists from it. What the API server
// said stays in the logs.
func asProblem(err error) error {
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	switch {
	case errors.Is(err, cache.ErrBusy):
		return problem.New(problem.Busy, "this replica reads as many lists as it may").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return problem.New(problem.SourceFailed, "the cluster did not answer in time").WithCause(err)
	default:
		return problem.New(problem.SourceFailed, "the cluster could not be read").WithCause(err)
	}
}
