package telemetry

import (
	"bufio"
	"net"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The attributes of HTTP spans (OpenTelemetry semantic conventions for HTTP).
const (
	attributeMethod    = "http.request.method"
	attributeStatus    = "http.response.status_code"
	attributeBodySize  = "http.response.body.size"
	attributeScheme    = "url.scheme"
	attributePath      = "url.path"
	attributeURL       = "url.full"
	attributeServer    = "server.address"
	attributePort      = "server.port"
	attributeUserAgent = "user_agent.original"
	attributeErrorType = "error.type"
)

var serverSpan = trace.WithSpanKind(trace.SpanKindServer)

// Handler gives next with a server span for each call, named by name. The span
// is in the context of the request, for next to add to. A 5xx marks it as
// failed, a 4xx does not.
func (t *Tracing) Handler(next http.Handler, name func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := Join(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.Start(ctx, name(r), serverSpan)
		r = r.WithContext(ctx)
		if !span.IsRecording() {
			next.ServeHTTP(w, r)
			return
		}
		defer span.End()
		watched := &watchedWriter{ResponseWriter: w}
		next.ServeHTTP(watched, r)
		status := watched.status
		if status == 0 {
			status = http.StatusOK // as net/http answers when nothing is written
		}
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		attrs := append(make([]attribute.KeyValue, 0, 7),
			attribute.String(attributeMethod, r.Method), attribute.String(attributeScheme, scheme), attribute.String(attributePath, r.URL.Path),
			attribute.Int(attributeStatus, status))
		if !watched.taken {
			attrs = append(attrs, attribute.Int64(attributeBodySize, watched.size))
		}
		if agent := r.UserAgent(); agent != "" {
			attrs = append(attrs, attribute.String(attributeUserAgent, agent))
		}
		if status >= http.StatusInternalServerError {
			attrs = append(attrs, attribute.String(attributeErrorType, strconv.Itoa(status)))
			span.SetStatus(codes.Error, "")
		}
		span.SetAttributes(attrs...)
	})
}

// watchedWriter sees the status and the size of an answer. What else the writer
// below can do, http.ResponseController finds.
type watchedWriter struct {
	http.ResponseWriter
	status int // 0 before there is one
	size   int64
	taken  bool // what the answer is, nobody knows here
}

// Unwrap gives the writer below.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack takes the connection from the server.
func (w *watchedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.taken = err == nil
	return conn, buffered, err
}

// WriteHeader sends the status.
func (w *watchedWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK { // what comes before is no answer
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *watchedWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.size += int64(n)
	return n, err
}
