package extauthz

import (
	"context"
	"fmt"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"

	"hangar.io/glidepath/authz/bucket"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/internal/ratelimit"
)

// Check answers a check that is a message, by way of its form on the wire.
func (s *Server) Check(ctx context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	raw, err := proto.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("writing a check: %w", err)
	}
	a, err := s.CheckRaw(ctx, raw)
	if err != nil {
		return nil, err
	}
	resp := new(authv3.CheckResponse)
	return resp, proto.Unmarshal(a, resp)
}

// CheckRaw answers a check as it is on the wire.
func (s *Server) CheckRaw(ctx context.Context, raw []byte) ([]byte, error) {
	c := new(call)
	if err := c.parse(raw); err != nil {
		return nil, err
	}
	return s.check(ctx, c)
}

// NewCounter gives what check counts an allowed call with, on a route with
// these limits. It says whether the call is within them.
func NewCounter(t *bucket.Table, limit, callerLimit string) func(*decision.Decision) (bool, error) {
	s := &Server{limits: t}
	route := extensions{{ratelimit.Extension, limit}, {ratelimit.CallerExtension, callerLimit}}
	return func(d *decision.Decision) (bool, error) {
		over, err := s.count(d, route)
		return over == nil, err
	}
}

// Kept is how many answers to reads are kept.
func (s *Server) Kept() int { return s.issuer.reads.Len() }

// Parsed is what is read of a check.
type Parsed struct {
	Method, Path string
	Extensions   map[string]string
	headers      *headers
}

// Header gives a header and how often it is there.
func (p Parsed) Header(name string) (string, int) { return p.headers.Get(name) }

// Parse reads a check as the server does.
func Parse(raw []byte) (Parsed, error) {
	c := new(call)
	if err := c.parse(raw); err != nil {
		return Parsed{}, err
	}
	p := Parsed{Method: c.method, Path: c.path, Extensions: map[string]string{}, headers: &c.headers}
	for _, e := range c.extensions {
		p.Extensions[e.name] = e.value
	}
	return p, nil
}
