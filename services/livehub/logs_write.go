package livehub

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/problem"
)

// logBufferBytes is what one log holds in memory, as Envoy does of one
// connection.
const logBufferBytes = 32 << 10

var logBuffers = sync.Pool{New: func() any { return new([logBufferBytes]byte) }}

// logWriter writes a log to a caller: each piece at once, and none for longer
// than a time.
type logWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	time    time.Duration
	sent    prometheus.Counter
	begun   bool
}

// begin sends the header unless it has been sent.
func (o *logWriter) begin() error {
	if o.begun {
		return nil
	}
	o.begun = true
	h := o.w.Header()
	// What is no UTF-8 in it is the reader's to replace. A browser must not
	// take a log for anything but text.
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	o.w.WriteHeader(http.StatusOK)
	return o.push(nil)
}

func (o *logWriter) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := o.begin(); err != nil {
		return err
	}
	return o.push(b)
}

// push writes and flushes within the time. A caller that takes nothing would
// otherwise hold a slot, and a connection to the node, for as long as it likes.
func (o *logWriter) push(b []byte) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(o.time)); err != nil {
		return err
	}
	if _, err := o.w.Write(b); err != nil {
		return err
	}
	if err := o.control.Flush(); err != nil {
		return err
	}
	o.sent.Add(float64(len(b)))
	// The connection may serve another call, which has its own.
	return o.control.SetWriteDeadline(time.Time{})
}

// failed says why a write failed.
func (o *logWriter) failed(r *http.Request) string {
	if r.Context().Err() != nil {
		return gone(r.Context())
	}
	return logSlow
}

// logFailed notes why a log was broken off: its answer cannot say so any more.
func logFailed(r *http.Request, err error) {
	p := problem.New(problem.SourceFailed, "the log was broken off").WithCause(err)
	p.Record(r.Context())
	slog.WarnContext(r.Context(), "call failed", "rule", p.Rule.ID, "traceId", problem.TraceID(r.Header.Get("Traceparent")), "error", p.Error())
}

// logMeters count what is sent of logs.
type logMeters struct {
	open     prometheus.Gauge
	outcomes *prometheus.CounterVec
	bytes    prometheus.Counter
}

func newLogMeters(reg prometheus.Registerer) *logMeters {
	m := &logMeters{
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "glidepath_livehub_logs", Help: "Logs that are being sent.",
		}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "glidepath_livehub_logs_total", Help: "Logs that were asked for, by what became of them.",
		}, []string{"result"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "glidepath_livehub_log_bytes_total", Help: "Bytes of logs that were sent.",
		}),
	}
	for _, outcome := range []string{logRefused, logWhole, logCut, logLeft, logSlow, logEnded} {
		m.outcomes.WithLabelValues(outcome)
	}
	reg.MustRegister(m.open, m.outcomes, m.bytes)
	return m
}
