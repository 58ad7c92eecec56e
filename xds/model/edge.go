package model

import (
	"errors"
	"fmt"
	"time"
)

// Edge is everything that one Envoy of the edge serves. Build it, then call
// Validate; an Edge that does not validate must not be translated.
type Edge struct {
	// Listen is where callers connect; a TCP address.
	Listen Address
	// People is the route for people; nil is an edge without one.
	People *PeopleRoute
	// TLS is what the listeners show; nil is an edge without TLS.
	TLS    *ListenerTLS
	Limits Limits
	// Authz is the name of the cluster that decides every call.
	Authz string
	// AuthzTimeout bounds one decision. It is longer than authz's own
	// deadline, so that authz itself gets to say what was slow.
	AuthzTimeout time.Duration
	Routes       []Route
	Clusters     []Cluster
	Replies      []Reply
	// GRPCReply is the answer to a call that calls itself gRPC.
	GRPCReply Reply
	// Board is a page for people; nil is none.
	Board   *Page
	Tracing Tracing
}

// Limits protect one connection or one call; what protects the whole process
// is in Envoy's bootstrap.
type Limits struct {
	// MaxHeadersKiB and MaxHeaders bound a request's headers together.
	MaxHeadersKiB, MaxHeaders uint32
	// HeadersTimeout bounds how long the headers of a request take to arrive,
	// RequestTimeout the whole request, its body included. Neither bounds an
	// answer, so a stream may be as long as it likes.
	HeadersTimeout, RequestTimeout time.Duration
	// IdleTimeout ends a call on which neither side has sent anything; it is
	// longer than the pings of a stream are apart.
	IdleTimeout time.Duration
	// ConnectionIdleTimeout closes a connection without calls.
	ConnectionIdleTimeout time.Duration
	// MaxStreamDuration is the backstop for streams, which have no timeout.
	MaxStreamDuration time.Duration
	// BufferBytes bounds what is held of one connection in each direction.
	BufferBytes uint32
	// MaxConcurrentStreams bounds the calls of one HTTP/2 connection. The
	// windows bound, in bytes, what a peer may send without being asked.
	MaxConcurrentStreams, StreamWindow, ConnectionWindow uint32
}

// Reply is what Envoy answers with one status when it answers by itself.
type Reply struct {
	Status              uint32
	Rule, Message, Hint string
}

// Tracing says where spans go.
type Tracing struct {
	// Service names the edge in spans.
	Service string
	// Cluster is the collector's cluster and URL the address of its OTLP/HTTP
	// traces. With an empty URL nothing is exported, and a caller's trace is
	// still joined and passed on.
	Cluster, URL string
	// Ratio of the traces that begin here to sample, 0 to 1. A caller's own
	// decision always wins.
	Ratio float64
}

// Validate reports every fault of e together.
func (e *Edge) Validate() error {
	return errors.Join(
		e.Listen.validateTCP("listen"),
		e.People.validate(e.Listen),
		e.TLS.validate(),
		e.Limits.validate(),
		e.validateClusters(),
		e.validateRoutes(),
		e.validateReplies(),
		e.Board.validate(),
		e.Tracing.validate(),
		e.validateReferences(),
	)
}

func (l Limits) validate() error {
	var errs []error
	for _, n := range []struct {
		name  string
		value uint32
		most  uint32
	}{
		{"limits.maxHeadersKiB", l.MaxHeadersKiB, 8192},
		{"limits.maxHeaders", l.MaxHeaders, 1 << 15},
		{"limits.bufferBytes", l.BufferBytes, 1 << 30},
		{"limits.maxConcurrentStreams", l.MaxConcurrentStreams, 1<<31 - 1},
	} {
		if n.value == 0 || n.value > n.most {
			errs = append(errs, fmt.Errorf("%s: %d is not between 1 and %d", n.name, n.value, n.most))
		}
	}
	// The protocol's own bounds: a smaller window than the initial one of RFC
	// 9113 would only be raised to it.
	for _, w := range []struct {
		name  string
		value uint32
	}{{"limits.streamWindow", l.StreamWindow}, {"limits.connectionWindow", l.ConnectionWindow}} {
		if w.value < 65535 || w.value > 1<<31-1 {
			errs = append(errs, fmt.Errorf("%s: %d is not between 65535 and %d", w.name, w.value, 1<<31-1))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"limits.headersTimeout", l.HeadersTimeout},
		{"limits.requestTimeout", l.RequestTimeout},
		{"limits.idleTimeout", l.IdleTimeout},
		{"limits.connectionIdleTimeout", l.ConnectionIdleTimeout},
		{"limits.maxStreamDuration", l.MaxStreamDuration},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s: %s is not positive", d.name, d.value))
		}
	}
	return errors.Join(errs...)
}

func (e *Edge) validateReplies() error {
	var errs []error
	seen := map[uint32]bool{}
	for _, r := range e.Replies {
		if seen[r.Status] {
			errs = append(errs, fmt.Errorf("reply %d: given twice", r.Status))
		}
		seen[r.Status] = true
		errs = append(errs, r.validate("reply"))
	}
	errs = append(errs, e.GRPCReply.validate("the reply to gRPC"))
	// Everything else that Envoy might answer is turned into one of these.
	for _, s := range []uint32{StatusOtherRequest, StatusOtherServer} {
		if !seen[s] {
			errs = append(errs, fmt.Errorf("reply %d: missing", s))
		}
	}
	return errors.Join(errs...)
}

func (r Reply) validate(what string) error {
	var errs []error
	if r.Status < 400 || r.Status > 599 {
		errs = append(errs, fmt.Errorf("%s %d: not the status of an error", what, r.Status))
	}
	if r.Rule == "" || r.Message == "" {
		errs = append(errs, fmt.Errorf("%s %d: needs a rule and a message", what, r.Status))
	}
	return errors.Join(errs...)
}

// The statuses that stand for those without a reply of their own: a fault of
// the request and one of the edge.
const (
	StatusOtherRequest uint32 = 400
	StatusOtherServer  uint32 = 503
)

func (t Tracing) validate() error {
	var errs []error
	if t.Service == "" {
		errs = append(errs, errors.New("tracing.service: missing"))
	}
	if !(t.Ratio >= 0 && t.Ratio <= 1) { // so that NaN is refused too
		errs = append(errs, fmt.Errorf("tracing.ratio: %v is not between 0 and 1", t.Ratio))
	}
	return errors.Join(errs...)
}

func (e *Edge) validateReferences() error {
	known := map[string]bool{}
	for _, c := range e.Clusters {
		known[c.Name] = true
	}
	var errs []error
	refer := func(what, cluster string) {
		if !known[cluster] {
			errs = append(errs, fmt.Errorf("%s: there is no cluster %q", what, cluster))
		}
	}
	refer("authz", e.Authz)
	refer("tracing", e.Tracing.Cluster)
	for _, r := range e.Routes {
		refer("route "+r.Op, r.Cluster)
	}
	if e.AuthzTimeout <= 0 {
		errs = append(errs, fmt.Errorf("authz: a timeout of %s is not positive", e.AuthzTimeout))
	}
	return errors.Join(errs...)
}
