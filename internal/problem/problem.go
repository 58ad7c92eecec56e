// Package problem owns the errors that callers see: one table of rules (see
// rules.go), the error type that carries a rule through the code, and the one
// way such an error becomes a JSON answer. What went wrong inside stays in the
// error's cause, which only logs and spans show.
package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"hangar.io/glidepath/internal/audit"
)

// Error is an error that a caller may see. Build one with New; the zero value
// answers as a failed source.
type Error struct {
	// Rule is the line of the table.
	Rule Rule
	// Message says what was wrong with this very call. It is shown to the
	// caller, so it holds nothing that the caller did not send or may not know.
	Message string
	// Hint overrides the rule's own hint when it is not empty.
	Hint string
	// Cause is what happened inside. It goes to logs and spans only.
	Cause error
}

// New gives an error of a rule with a message of its own; an empty message
// takes the rule's.
func New(rule Rule, message string) *Error {
	return &Error{Rule: rule, Message: message}
}

// Newf is New with a formatted message.
func Newf(rule Rule, format string, args ...any) *Error {
	return New(rule, fmt.Sprintf(format, args...))
}

// WithHint returns a copy of e with another hint.
func (e *Error) WithHint(hint string) *Error {
	c := *e
	c.Hint = hint
	return &c
}

// WithCause returns a copy of e that remembers what happened inside.
func (e *Error) WithCause(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// Error is the form for logs: with the cause.
func (e *Error) Error() string {
	s := e.Rule.ID + ": " + e.Body("").Message
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// From finds the *Error in err's chain. An error that carries none is a fault
// of ours or of a source: it answers as GP-API-502 and keeps err as its cause.
func From(err error) *Error {
	if p, ok := errors.AsType[*Error](err); ok {
		return p
	}
	return New(SourceFailed, "").WithCause(err)
}

// Body is what a caller reads.
type Body struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	TraceID string `json:"traceId,omitempty"`
}

// Body gives the answer's JSON shape for a call with this trace id (may be
// empty).
func (e *Error) Body(traceID string) Body {
	rule := e.Rule
	if rule.ID == "" {
		rule = SourceFailed
	}
	b := Body{Rule: rule.ID, Message: e.Message, Hint: e.Hint, TraceID: traceID}
	if b.Message == "" {
		b.Message = rule.Message
	}
	if b.Hint == "" {
		b.Hint = rule.Hint
	}
	return b
}

// Status gives the answer's HTTP status; never 0.
func (e *Error) Status() int {
	if e.Rule.Status == 0 {
		return SourceFailed.Status
	}
	return e.Rule.Status
}

// Write answers r with err. It sets the audit header, so that the edge's audit
// line says the rule and the message, and logs the cause of a 5xx. A process's
// log (see package lifecycle) writes only some of those of one rule.
func Write(w http.ResponseWriter, r *http.Request, err error) {
	p := From(err)
	p.Record(r.Context())
	body := p.Body(TraceID(r.Header.Get("Traceparent")))
	if p.Status() >= http.StatusInternalServerError {
		slog.ErrorContext(r.Context(), "call failed", "rule", body.Rule, "traceId", body.TraceID, "error", p.Error())
	}
	h := w.Header()
	for _, name := range contentHeaders {
		h.Del(name)
	}
	if aerr := audit.Set(h, audit.Fields{"rule": body.Rule, "error": body.Message}); aerr != nil {
		slog.ErrorContext(r.Context(), "audit fields lost", "rule", body.Rule, "error", aerr)
	}
	if p.Status() == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", Challenge(p.Rule))
	}
	if p.Status() == http.StatusTooManyRequests && h.Get("Retry-After") == "" {
		h.Set("Retry-After", retryAfter)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status())
	// The caller may be gone; there is nobody left to tell.
	_ = json.NewEncoder(w).Encode(body)
}

// contentHeaders describe a body that is not going to be sent once an error
// takes its place.
var contentHeaders = []string{
	"Content-Encoding", "Content-Length", "Etag", "Last-Modified",
}

// retryAfter is when to try again where nobody knows better, in seconds.
const retryAfter = "5"

// Challenge gives the value of WWW-Authenticate for a 401 (RFC 6750, section
// 3): a call without a token gets no error code.
func Challenge(rule Rule) string {
	const realm = `Bearer realm="glidepath"`
	if rule.ID == AuthNoToken.ID {
		return realm
	}
	return realm + `, error="invalid_token"`
}

// TraceID gives the trace id of a W3C traceparent, or "" when it is malformed
// or all zeros. Only version 00's layout is read, which later versions keep.
func TraceID(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || len(parts[1]) != 32 {
		return ""
	}
	id := parts[1]
	if strings.Trim(id, "0") == "" || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}
