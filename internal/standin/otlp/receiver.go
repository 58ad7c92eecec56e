// Package otlp is a collector that takes spans over OTLP/HTTP and remembers
// them for tests. It is as strict as a real one: what is not a protobuf export
// request by POST to /v1/traces is refused.
package otlp

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"hangar.io/glidepath/internal/standin/loopback"
)

const (
	tracesPath  = "/v1/traces"
	contentType = "application/x-protobuf"
	maxBody     = 20 << 20 // the limit of the OpenTelemetry collector, after decompression
	maxSpans    = 100_000  // older ones are forgotten
)

// Receiver is a running collector. All methods may be called concurrently.
type Receiver struct {
	URL string // http://host:port, as an exporter is given it

	*loopback.Server // its Addr is host:port

	mu      sync.Mutex
	spans   []Span
	exports int           // requests, refused ones included
	refuses []error       // what was wrong with those that were refused
	status  int           // answered to everything; 0 takes spans
	changed chan struct{} // closed and replaced when spans arrive
}

// Start listens on a port of its own on loopback until Stop.
func Start() (*Receiver, error) {
	r := &Receiver{changed: make(chan struct{})}
	var err error
	if r.Server, err = loopback.Serve(r); err != nil {
		return nil, fmt.Errorf("starting the OTLP receiver: %w", err)
	}
	r.URL = "http://" + r.Addr
	return r, nil
}

// Fail has every export answered with this status from now on; 0 takes them
// again.
func (r *Receiver) Fail(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// Exports gives the number of requests since the start, and what was wrong with
// those that were refused.
func (r *Receiver) Exports() (n int, refused []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exports, append([]error(nil), r.refuses...)
}

// Spans gives the spans since the start or the last Reset, in the order of
// their arrival.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Span(nil), r.spans...)
}

// Trace gives the spans of one trace, by its id in hexadecimal digits.
func (r *Receiver) Trace(id string) []Span {
	var out []Span
	for _, s := range r.Spans() {
		if s.TraceID == id {
			out = append(out, s)
		}
	}
	return out
}

// Reset forgets all spans.
func (r *Receiver) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = nil
}

// Await returns when enough says so of the spans of a trace, or with ctx's
// error and the spans that are there.
func (r *Receiver) Await(ctx context.Context, id string, enough func([]Span) bool) ([]Span, error) {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		spans := r.Trace(id)
		if enough(spans) {
			return spans, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return spans, ctx.Err()
		}
	}
}

// ServeHTTP takes one export.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	spans, status, err := read(req)
	r.mu.Lock()
	r.exports++
	if err != nil {
		r.refuses = append(r.refuses, err)
	}
	if r.status != 0 {
		status = r.status
	}
	if status == http.StatusOK {
		r.spans = append(r.spans, spans...)
		r.spans = r.spans[max(0, len(r.spans)-maxSpans):]
		close(r.changed)
		r.changed = make(chan struct{})
	}
	r.mu.Unlock()
	if status != http.StatusOK {
		http.Error(w, "refused", status)
		return
	}
	raw, err := proto.Marshal(&collectorpb.ExportTraceServiceResponse{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(raw)
}

// read gives the spans of an export, or the status that refuses it and why.
func read(req *http.Request) ([]Span, int, error) {
	switch {
	case req.URL.Path != tracesPath:
		return nil, http.StatusNotFound, fmt.Errorf("an export to %s", req.URL.Path)
	case req.Method != http.MethodPost:
		return nil, http.StatusMethodNotAllowed, fmt.Errorf("an export by %s", req.Method)
	case req.Header.Get("Content-Type") != contentType:
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("an export of type %q", req.Header.Get("Content-Type"))
	}
	var body io.Reader = req.Body
	switch encoding := req.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(req.Body)
		if err != nil {
			return nil, http.StatusBadRequest, fmt.Errorf("unzipping an export: %w", err)
		}
		body = unzipped
	default:
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("an export in the encoding %q", encoding)
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("reading an export: %w", err)
	}
	if len(raw) > maxBody {
		return nil, http.StatusRequestEntityTooLarge, errors.New("an export that is too large")
	}
	var export collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &export); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("decoding an export: %w", err)
	}
	spans, err := spansOf(&export)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	return spans, http.StatusOK, nil
}
