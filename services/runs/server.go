package runs

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/problem"
	explained "hangar.io/glidepath/services/runs/explain"
)

// server answers the operations. It implements runsapi.ServerInterface.
type server struct {
	archive    archive
	namespaces *namespaces
	documents  *documents
	heavy      *turns  // of full lists
	passing    *turns  // of logs that are too large to be kept
	lists      *budget // of full lists
	runs       *budget // of single runs
	warming    *budget // of lists that nobody asked for
	failures   *explained.Catalogue
	tests      tests
	wait       time.Duration // how long a call waits for what it asks for
	now        func() time.Time
	badRecords prometheus.Counter // of the archive, left out of lists
	passed     *prometheus.CounterVec
}

// respond gives a call the document that find comes to within the time that a
// call may wait.
func (s *server) respond(w http.ResponseWriter, r *http.Request, find func(ctx context.Context) (*document, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), s.wait)
	defer cancel()
	d, err := find(ctx)
	if err == nil {
		d.Write(w, r, s.documents.plains)
		return
	}
	refuse(w, r, explain(err))
}

// refuse answers a call with an error.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		// The caller left. Nobody must take an empty answer for an empty
		// list, so there is none.
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way of not answering
	}
	problem.Write(w, r, err)
}

// explain says to a caller what kept its answer from it. What a source said
// stays in the logs.
func explain(err error) error {
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	switch {
	case errors.Is(err, cache.ErrBusy):
		return problem.New(problem.Busy, "this replica reads as much as it may").WithCause(err)
	case errors.Is(err, answer.ErrTooLarge):
		return problem.New(problem.SourceFailed, "this is more than is answered at once").WithHint("ask for less").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return problem.New(problem.SourceFailed, "the archive of runs did not answer in time").WithCause(err)
	default:
		return problem.New(problem.SourceFailed, "the archive of runs could not be read").WithCause(err)
	}
}
