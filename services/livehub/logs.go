package livehub

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/api/livehubapi"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/podlog"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/renewal"
)

// logs reads the logs of containers. Nothing of them is kept.
type logs struct {
	source *podlog.Client
	slots  chan struct{} // one for each log that is sent
	// keep has a log end with the right to it.
	keep func(r *http.Request) (ctx context.Context, release func(), err error)
	// serving ends when the replica does, and followed logs with it.
	serving context.Context
	find    time.Duration // how long it may take to find a log and begin it
	write   time.Duration // how long a caller may take no more of it
	meters  *logMeters
}

// settleTime is how long the cluster may take to say that a container has ended:
// a busy kubelet reports seconds later.
const settleTime = 15 * time.Second

func newLogs(cfg Config, cluster *rest.Config, reg prometheus.Registerer) (*logs, error) {
	source, err := podlog.NewClient(cluster, podlog.Times{Answer: cfg.Wait, Stall: cfg.LogStall, Settle: settleTime})
	if err != nil {
		return nil, err
	}
	return &logs{
		source: source, slots: make(chan struct{}, cfg.MaxLogs),
		find: cfg.Wait, write: cfg.LogStall, meters: newLogMeters(reg),
	}, nil
}

// GetLiveLogs sends a container's log as it comes. The namespace is the
// identity's and the pod the TaskRun's: neither is read from the request.
func (s *server) GetLiveLogs(w http.ResponseWriter, r *http.Request, app, taskRun, container string, params livehubapi.GetLiveLogsParams) {
	follow := params.Follow != nil && *params.Follow
	outcome, err := s.logs.answer(w, r, app, logName{taskRun, container}, follow)
	s.logs.meters.outcomes.WithLabelValues(outcome).Inc()
	switch {
	case outcome == logRefused:
		problem.Write(w, r, err)
	case outcome != logWhole:
		// What was sent must not look whole.
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way of breaking an answer off
	}
}

// logName names a container's log in its namespace.
type logName struct{ taskRun, container string }

// check refuses names that no TaskRun or container can have, before they become
// part of a path.
func (n logName) check() error {
	if len(n.taskRun) > maxNameBytes || len(validation.IsDNS1123Subdomain(n.taskRun)) > 0 {
		return problem.Newf(problem.BadRequest, "%s is not the name of a TaskRun", calls.Quoted(n.taskRun))
	}
	if len(validation.IsDNS1123Label(n.container)) > 0 {
		return problem.Newf(problem.BadRequest, "%s is not the name of a container", calls.Quoted(n.container)).
			WithHint("the container of a step is step-<step>")
	}
	return nil
}

// What became of a log that was asked for.
const (
	logRefused = "refused" // answered with an error, and nothing of it sent
	logWhole   = "whole"
	logCut     = "cut"   // broken off: its source did
	logLeft    = "left"  // the caller left
	logSlow    = "slow"  // the caller took no more of it
	logEnded   = "ended" // the right to it did
)

// answer sends a log, or gives the error to answer with.
func (l *logs) answer(w http.ResponseWriter, r *http.Request, app string, name logName, follow bool) (outcome string, err error) {
	scope, err := calls.AppScope(r, app)
	if err != nil {
		return logRefused, err
	}
	if err := errors.Join(name.check(), checkFollow(r)); err != nil {
		return logRefused, err
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	default:
		return logRefused, problem.New(problem.Busy, "this replica sends as many logs as it may").WithHint("try again, or read the archived log once the run has finished")
	}
	l.meters.open.Inc()
	defer l.meters.open.Dec()
	kept, release, err := l.keep(r)
	if err != nil {
		return logRefused, err
	}
	defer release()
	ctx, cancel := context.WithCancelCause(kept)
	defer cancel(context.Canceled)
	if follow {
		// It would hold the replica's end up for as long as that may take.
		defer endWith(l.serving, cancel)()
	}
	log, err := l.begin(ctx, cancel, scope, name, follow)
	if err != nil {
		if kept.Err() != nil {
			return gone(kept), err
		}
		return logRefused, explainLog(name, err)
	}
	defer func() { _ = log.Close() }()
	return l.send(w, r.WithContext(kept), log, follow)
}

// gone says why the context of a log has ended.
func gone(ctx context.Context) string {
	if _, ended := renewal.EndOf(ctx); ended {
		return logEnded
	}
	return logLeft
}

// checkFollow takes what the contract says and nothing else that a parser would
// take for a boolean.
func checkFollow(r *http.Request) error {
	query := r.URL.Query()
	if v := query.Get(followParam); query.Has(followParam) && v != "true" && v != "false" {
		return badFollow()
	}
	return nil
}

// begin finds a log and opens it, within the time for that.
func (l *logs) begin(ctx context.Context, cancel context.CancelCauseFunc, s calls.Scope, name logName, follow bool) (*podlog.Log, error) {
	late := time.AfterFunc(l.find, func() { cancel(podlog.ErrSlow) })
	defer late.Stop()
	of, err := l.source.Find(ctx, s.Namespace, name.taskRun, name.container)
	if err != nil {
		return nil, err
	}
	return l.source.Open(ctx, of, follow)
}

// send passes a log on. Before its first byte an error is still an answer.
func (l *logs) send(w http.ResponseWriter, r *http.Request, log *podlog.Log, follow bool) (outcome string, err error) {
	out := &logWriter{w: w, control: http.NewResponseController(w), time: l.write, sent: l.meters.bytes}
	if follow {
		// The container may be silent for long; the caller learns now that it
		// listens.
		if err := out.begin(); err != nil {
			return out.failed(r), err
		}
	}
	buffer := logBuffers.Get().(*[logBufferBytes]byte)
	defer logBuffers.Put(buffer)
	for {
		n, err := log.Read(buffer[:]) //nolint:contextcheck // a log has the context that it was opened with
		if werr := out.write(buffer[:n]); werr != nil {
			return out.failed(r), werr
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return logWhole, out.begin()
		case r.Context().Err() != nil:
			return gone(r.Context()), err
		case !out.begun:
			return logRefused, explainLog(logName{}, err)
		default:
			logFailed(r, err)
			return logCut, err
		}
	}
}
