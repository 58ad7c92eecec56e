package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport gives base with a client span for each request that is made for a
// call, named by name, and with the call's traceparent on it. A request that is
// made for no call, in the background, passes as it is. Headers and bodies are
// never recorded: they hold tokens.
func (t *Tracing) Transport(base http.RoundTripper, name func(*http.Request) string) http.RoundTripper {
	return &transport{base: base, tracing: t, name: name}
}

// WrapTransport gives Transport in the form in which client-go takes it.
func (t *Tracing) WrapTransport(name func(*http.Request) string) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper { return t.Transport(base, name) }
}

type transport struct {
	base    http.RoundTripper
	tracing *Tracing
	name    func(*http.Request) string
}

// RoundTrip sends one request. Its span ends with the body of the answer.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return t.base.RoundTrip(r)
	}
	var span trace.Span
	if sc.IsSampled() && t.tracing.Enabled() {
		ctx, span = t.tracing.Start(ctx, t.name(r), clientSpan)
		span.SetAttributes(request(r)...)
	}
	r = r.Clone(ctx) // a RoundTripper changes no request (net/http)
	w3c.Inject(ctx, propagation.HeaderCarrier(r.Header))
	resp, err := t.base.RoundTrip(r)
	switch {
	case span == nil:
		return resp, err
	case err != nil:
		failed(span, err)
		span.End()
		return nil, err
	}
	span.SetAttributes(attribute.Int(attributeStatus, resp.StatusCode))
	if resp.StatusCode >= http.StatusBadRequest { // a client asked what it should not have
		span.SetAttributes(attribute.String(attributeErrorType, strconv.Itoa(resp.StatusCode)))
		span.SetStatus(codes.Error, "")
	}
	resp.Body = watch(resp.Body, span)
	return resp, nil
}

// WrappedRoundTripper lets client-go find the transport below, whose idle
// connections it closes.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.base }

var clientSpan = trace.WithSpanKind(trace.SpanKindClient)

// request describes a request. A password in its address is not shown.
func request(r *http.Request) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 4),
		attribute.String(attributeMethod, r.Method), attribute.String(attributeURL, r.URL.Redacted()), attribute.String(attributeServer, r.URL.Hostname()))
	port, err := strconv.Atoi(r.URL.Port())
	switch {
	case err == nil:
	case r.URL.Scheme == "https":
		port = 443
	default:
		port = 80
	}
	return append(attrs, attribute.Int(attributePort, port))
}

func failed(span trace.Span, err error) {
	kind := fmt.Sprintf("%T", err)
	switch {
	case errors.Is(err, context.Canceled):
		kind = "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		kind = "timeout"
	}
	span.SetAttributes(attribute.String(attributeErrorType, kind))
	span.SetStatus(codes.Error, cut(err.Error()))
}

// watch gives body with span, which ends when the body does.
func watch(body io.ReadCloser, span trace.Span) io.ReadCloser {
	return &watchedBody{ReadCloser: body, span: span}
}

type watchedBody struct {
	io.ReadCloser
	span trace.Span
	end  sync.Once
}

// Read reads a part of the body.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.end.Do(func() { b.span.End() })
	default:
		b.end.Do(func() {
			failed(b.span, err)
			b.span.End()
		})
	}
	return n, err
}

// Close ends the body.
func (b *watchedBody) Close() error {
	err := b.ReadCloser.Close()
	b.end.Do(func() { b.span.End() })
	return err
}
