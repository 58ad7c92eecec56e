package podlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// What is wrong with a log that was opened.
var (
	// ErrCut says that what was read is not the whole log.
	ErrCut = errors.New("the log is cut")
	// ErrNoLog says that the node answered with something that is no log.
	ErrNoLog = errors.New("the node gave no log")
	// ErrSlow says that an answer, or more of it, took too long.
	ErrSlow = errors.New("the log did not come in time")
)

// maxLast bounds what is read of a last line.
const maxLast = 64 << 10

// Log is a log that is being read: bytes as the container wrote them, each
// line with the time when it did. It is for one goroutine.
type Log struct {
	client *Client
	of     *Container
	follow bool
	before *lines // the last line there was before, where it is not followed

	ctx    context.Context //nolint:containedctx // of the one call that reads the log
	cancel context.CancelCauseFunc
	stall  *time.Timer
	body   io.ReadCloser

	seen lines
	held [maxStamp]byte // what came and is not sure yet
	n    int
}

// Open begins to read a container's log. With follow it goes on until the
// container ends. The caller closes it; ctx ends it, too.
//
// The errors say why there is nothing to read: those of Find, which may have
// become true since, and ErrNoLog and ErrSlow.
func (c *Client) Open(ctx context.Context, of *Container, follow bool) (*Log, error) {
	// What there is must come. And a node that has lost the log says so here,
	// before anything has been answered.
	before, err := c.last(ctx, of, false)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l := &Log{client: c, of: of, follow: follow, before: before, ctx: ctx, cancel: cancel}
	l.stall = time.AfterFunc(c.times.Answer, func() { l.cancel(ErrSlow) })
	l.body, err = c.openLog(ctx, of, url.Values{"follow": {strconv.FormatBool(follow)}})
	if err != nil {
		l.stop()
		return nil, err
	}
	if follow {
		l.stall.Stop() // a container may be silent as long as it likes
	}
	return l, nil
}

// Close ends the reading. Closing twice is harmless.
func (l *Log) Close() error {
	l.stop()
	return l.body.Close()
}

func (l *Log) stop() {
	l.stall.Stop()
	l.cancel(context.Canceled)
}

// Read reads on into p, which has to have room for a line's time. The error is
// io.EOF at the end of a whole log alone.
func (l *Log) Read(p []byte) (int, error) {
	for {
		if !l.follow {
			l.stall.Reset(l.client.times.Stall)
		}
		held := copy(p, l.held[:l.n])
		n, err := l.body.Read(p[held:])
		n += held
		sure, ok := l.seen.take(p[:n])
		l.n = copy(l.held[:], p[sure:n])
		switch {
		case !ok:
			return sure, fmt.Errorf("%w: after the log it said %q", ErrCut, p[sure:min(n, sure+200)])
		case sure > 0 && (err == nil || errors.Is(err, io.EOF)):
			return sure, nil // an end comes again
		case errors.Is(err, io.EOF):
			return 0, l.check()
		case err != nil:
			return sure, l.broken(err)
		}
	}
}

func (l *Log) broken(err error) error {
	if cause := context.Cause(l.ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("%w: %w", ErrCut, err)
}

// check says what the end of the answer was.
func (l *Log) check() error {
	if l.n > 0 {
		return fmt.Errorf("%w: within the time of a line", ErrCut)
	}
	last := l.before
	if l.follow {
		var err error
		if last, err = l.ended(); err != nil {
			return err
		}
	}
	if !l.seen.covers(last) {
		return fmt.Errorf("%w: it ended before the line of %s", ErrCut, last.at().Format(time.RFC3339Nano))
	}
	return io.EOF
}

// ended waits until the cluster says that the container of a log that was
// followed has ended, and gives the last line of the whole log.
func (l *Log) ended() (*lines, error) {
	const poll = 250 * time.Millisecond
	ctx, cancel := context.WithTimeout(l.ctx, l.client.times.Settle)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		pod, err := l.client.getPod(ctx, l.of.namespace, l.of.pod)
		if errors.Is(err, ErrGone) || err == nil && pod.UID != l.of.podUID {
			// Whatever removed the pod ended the container; its log is gone
			// with it, so that nothing can be compared any more.
			return &lines{}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: whether its container has ended: %w", ErrCut, err)
		}
		status := statusOf(pod, l.of.name)
		if status.State.Running == nil || status.ContainerID != l.of.id {
			return l.final(ctx, status.ContainerID != l.of.id && status.State.Running != nil)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: its container still runs", ErrCut)
		}
	}
}

// final gives the last line of a container that has ended; another may have
// taken its place.
func (l *Log) final(ctx context.Context, replaced bool) (*lines, error) {
	last, err := l.client.last(ctx, l.of, replaced)
	switch {
	case errors.Is(err, ErrGone), errors.Is(err, ErrNotStarted):
		return &lines{}, nil // the log has been removed meanwhile
	case err != nil:
		return nil, fmt.Errorf("%w: its last line: %w", ErrCut, err)
	}
	return last, nil
}

// last reads the last line that a log has now, of the container before the
// present one if previous says so.
func (c *Client) last(ctx context.Context, of *Container, previous bool) (*lines, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.times.Answer, ErrSlow)
	defer cancel()
	body, err := c.openLog(ctx, of, url.Values{
		"tailLines": {"1"}, "limitBytes": {strconv.Itoa(maxLast)}, "previous": {strconv.FormatBool(previous)},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(body, maxLast))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("reading the last line: %w", err)
	}
	last := &lines{}
	if n, ok := last.take(raw); !ok || n < len(raw) {
		return nil, fmt.Errorf("%w: it said %q", ErrNoLog, raw[n:min(len(raw), n+200)])
	}
	return last, nil
}

// openLog begins an answer with a log.
func (c *Client) openLog(ctx context.Context, of *Container, query url.Values) (io.ReadCloser, error) {
	query.Set("container", of.name)
	query.Set("timestamps", "true")
	body, err := c.open(ctx, query, "api", "v1", "namespaces", of.namespace, "pods", of.pod, "log")
	switch {
	case answered(err, http.StatusNotFound):
		return nil, fmt.Errorf("pod %s: %w: %w", of.pod, ErrGone, err)
	case answered(err, http.StatusBadRequest):
		// The pod has the container, so it does not run any more or not again.
		return nil, fmt.Errorf("container %s of pod %s: %w: %w", of.name, of.pod, ErrNotStarted, err)
	case err != nil:
		return nil, fmt.Errorf("reading the log of container %s of pod %s: %w", of.name, of.pod, err)
	}
	return body, nil
}
