package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/problem"
)

const (
	// passedLogs is how many logs that are too large to be kept a replica passes on
	// at once, and passedWaits how many calls more wait for that.
	passedLogs  = 8
	passedWaits = 32
	// passedPiece is what one of them holds in memory.
	passedPiece = 32 << 10
	// passedShare is how many of them are one caller's.
	passedShare = 2
)

// passLog passes a log on as it comes. The archive is read once for each caller,
// no faster than the caller takes it.
func (s *server) passLog(w http.ResponseWriter, r *http.Request, name logName) {
	log, err := s.beginPassing(r.Context(), name)
	if err != nil {
		s.passed.WithLabelValues("refused").Inc()
		refuse(w, r, explain(err))
		return
	}
	defer func() { _ = log.Close() }() // it is read to its end, or broken off
	h := w.Header()
	h.Set("Content-Type", logBody.contentType)
	h.Set("Cache-Control", "no-store")
	to := newPatient(w)
	_, err = io.CopyBuffer(to, log, make([]byte, passedPiece))
	if err == nil {
		err = to.end()
	}
	if err != nil {
		s.passed.WithLabelValues("cut").Inc()
		if r.Context().Err() == nil {
			p := problem.New(problem.SourceFailed, "the log was broken off").WithCause(err)
			p.Record(r.Context())
			slog.WarnContext(r.Context(), "call failed", "rule", p.Rule.ID, "traceId", problem.TraceID(r.Header.Get("Traceparent")), "error", p.Error())
		}
		// What was sent must not look whole.
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way of breaking an answer off
	}
	s.passed.WithLabelValues("whole").Inc()
}

// beginPassing opens a log within the time that a call may wait. Its turn ends
// when it is closed.
func (s *server) beginPassing(ctx context.Context, name logName) (io.ReadCloser, error) {
	done, err := s.passingTurn(ctx, name.scope)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(s.wait/2, func() { cancel(context.DeadlineExceeded) })
	log, _, err := s.openLog(ctx, name)
	if !late.Stop() && err == nil {
		_ = log.Close() // it is nobody's
		err = context.DeadlineExceeded
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			err = fmt.Errorf("opening a log: %w", context.DeadlineExceeded)
		}
		cancel(nil)
		done()
		return nil, err
	}
	return &turn{log, func() { cancel(nil); done() }}, nil
}

// passingTurn waits for a turn, first among those of the caller: who stops reading
// leaves turns to the others.
func (s *server) passingTurn(ctx context.Context, scope calls.Scope) (done func(), err error) {
	until := time.Now().Add(s.wait / 2)
	own, err := s.passers.begin(ctx, callerOf(ctx), s.wait/2)
	if err != nil {
		return nil, err
	}
	all, err := s.passing.begin(ctx, scope.Key(), time.Until(until))
	if err != nil {
		own()
		return nil, err
	}
	return func() { all(); own() }, nil
}

// turn is a log that is passed on.
type turn struct {
	io.ReadCloser

	done func()
}

// Close ends the turn.
func (t *turn) Close() error {
	defer t.done()
	return t.ReadCloser.Close()
}

func newPassed(reg prometheus.Registerer) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_runs_passed_logs_total",
		Help: "Logs that were too large to be kept and were passed on as they came, by what became of them: whole, cut or refused.",
	}, []string{"result"})
	for _, result := range []string{"whole", "cut", "refused"} {
		c.WithLabelValues(result)
	}
	reg.MustRegister(c)
	return c
}
