package extauthz

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/internal/problem"
)

// What the edge's routes tell authz. Only a route's own configuration gets into
// context_extensions: nothing that a caller sends does.
const (
	// opExtension is the operationId, or operation.Unmatched.
	opExtension = "op"
	// allowExtension lists the methods of a path whose method did not match.
	allowExtension = "allow"
)

// headers are a request's headers as Envoy hands them over: names in lower
// case, a repeated header joined with commas, or each apart in a list where the
// filter is set to send raw headers. Both are read, so that neither setting
// hides a repetition.
type headers struct {
	joined map[string]string
	raw    []*corev3.HeaderValue
}

// Get gives a header's value and how many times it is there.
func (h headers) Get(name string) (value string, times int) {
	if v, ok := h.joined[name]; ok {
		value, times = v, 1
	}
	for _, r := range h.raw {
		if r.GetKey() != name {
			continue
		}
		times++
		if value = r.GetValue(); value == "" {
			value = string(r.GetRawValue())
		}
	}
	return value, times
}

// agree says whether a pseudo-header, if it is there, says the same as the
// request's own field.
func (h headers) agree(name, value string) bool {
	v, times := h.Get(name)
	return times == 0 || (times == 1 && v == value)
}

// read gives the call to decide, or the error that refuses it: that its route
// is no operation's, or that the edge is misconfigured.
func (s *Server) read(req *authv3.CheckRequest) (decision.Request, error) {
	attributes := req.GetAttributes()
	http := attributes.GetRequest().GetHttp()
	extensions := attributes.GetContextExtensions()
	id := extensions[opExtension]
	if id == operation.Unmatched {
		if extensions[allowExtension] != "" {
			return decision.Request{}, problem.New(problem.EdgeMethodNotAllowed, "")
		}
		return decision.Request{}, problem.New(problem.EdgeNotFound, "")
	}
	op, ok := s.operations.Lookup(id)
	if !ok {
		return decision.Request{}, fmt.Errorf("the route names no operation of the contract: %q", id)
	}
	h := headers{joined: http.GetHeaders(), raw: http.GetHeaderMap().GetHeaders()}
	if !h.agree(":method", http.GetMethod()) || !h.agree(":path", http.GetPath()) {
		return decision.Request{}, fmt.Errorf("%w: two methods or two paths", operation.ErrMismatch)
	}
	return decision.Request{Operation: op, Method: http.GetMethod(), Target: http.GetPath(), Headers: h}, nil
}
