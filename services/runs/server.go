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
	passers    *turns  // of them, by caller
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
		s.send(w, r, d)
		return
	}
	refuse(w, r, explain(err))
}

// send answers a call with a document that is kept.
func (s *server) send(w http.ResponseWriter, r *http.Request, d *document) {
	form := d.For(r, s.documents.plains)
	key, bytes := form.Held()
	end, err := s.documents.sending.begin(callerOf(r.Context()), key, int64(bytes))
	if err != nil {
		s.documents.unsent.WithLabelValues("refused").Inc()
		refuse(w, r, problem.New(problem.Busy, "this replica sends as much as it may").WithCause(err))
		return
	}
	defer end()
	s.deliver(w, form.Write)
}

// deliver sends an answer, or ends the connection: a part must not look whole.
func (s *server) deliver(w http.ResponseWriter, write func(http.ResponseWriter) error) {
	to := newPatient(w)
	err := write(to)
	if err == nil {
		err = to.end()
	}
	if err != nil {
		s.documents.unsent.WithLabelValues("cut").Inc()
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way of breaking an answer off
	}
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
