package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"hangar.io/glidepath/internal/standin/loopback"
)

// timestamp is how container runtimes write it: nine digits always.
const timestamp = "2006-01-02T15:04:05.000000000Z07:00"

func (k *Kubelet) containerLogs(w http.ResponseWriter, r *http.Request) {
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	fault := k.meet(namespace, name, container)
	if fault.before(w, r) {
		return
	}
	o, err := parse(r.URL.Query())
	switch {
	case errors.Is(err, errOptions):
		fail(w, http.StatusUnprocessableEntity, err)
		return
	case err != nil:
		fail(w, http.StatusBadRequest, err)
		return
	}
	pod := k.pod(namespace, name)
	if pod == nil {
		fail(w, http.StatusNotFound, fmt.Errorf("pod %q does not exist", name))
		return
	}
	if !hasContainer(pod, container) {
		fail(w, http.StatusNotFound, fmt.Errorf("container %q not found in pod %q", container, name))
		return
	}
	id, err := containerID(pod, container, o.previous)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	// From here on the answer is 200, whatever happens: a real kubelet begins it before it asks the runtime for the log,
	// and writes what goes wrong then where the log should be.
	w.WriteHeader(http.StatusOK)
	flusher := http.NewResponseController(w)
	if err := flusher.Flush(); err != nil {
		return
	}
	log := k.log(id)
	if log == nil || fault.Sentence {
		_, _ = fmt.Fprintf(w, "unable to retrieve container logs for %s", id) // a client that left needs no answer
		return
	}
	out := &writer{to: w, flush: flusher.Flush, left: -1, fault: fault, ctx: r.Context()}
	if o.limitBytes != nil {
		out.left = *o.limitBytes
	}
	log.copy(r.Context(), out, o, o.since(k.cfg.Clock.Now()))
}

func fail(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, err.Error()) //nolint:gosec // plain text, and a client that left needs no answer
}

// copy writes the lines that the options ask for, and with follow those that come, until the log or the request ends.
func (l *Log) copy(ctx context.Context, out *writer, o options, since time.Time) {
	next := 0
	if o.tailLines != nil {
		next = l.tail(*o.tailLines)
	}
	stop := l.end() // without follow, what is written from now on does not belong to the answer
	for {
		lines, after, ended, changed := l.from(next)
		for i, line := range lines {
			if !o.follow && after-len(lines)+i >= stop {
				return
			}
			if line.at.Before(since) {
				continue
			}
			if !out.line(line, o.timestamps) {
				return
			}
		}
		next = after
		switch {
		case ended, !o.follow && next >= stop:
			return
		case len(lines) > 0:
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// writer writes lines to a client within a limit, and as a fault has it.
type writer struct {
	to    io.Writer
	flush func() error
	left  int64 // bytes; negative: any number
	fault Fault
	sent  int
	ctx   context.Context //nolint:containedctx // of the one request the writer belongs to
}

// line reports whether there may be another one.
func (w *writer) line(l line, stamped bool) bool {
	if !loopback.Pause(w.ctx, w.fault.Slow) {
		return false
	}
	text := make([]byte, 0, len(timestamp)+len(l.text)+1)
	if stamped {
		text = append(l.at.UTC().AppendFormat(text, timestamp), ' ')
	}
	text = append(append(text, l.text...), '\n')
	if w.left >= 0 {
		text = text[:min(int64(len(text)), w.left)]
		w.left -= int64(len(text))
	}
	cut := w.fault.Cut > 0 && w.sent+len(text) >= w.fault.Cut
	if cut {
		text = text[:w.fault.Cut-w.sent]
	}
	if _, err := w.to.Write(text); err != nil || w.flush() != nil {
		return false
	}
	if w.sent += len(text); cut {
		loopback.Abort()
	}
	return w.left != 0
}
