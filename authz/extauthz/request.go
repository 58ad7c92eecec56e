package extauthz

import (
	"fmt"

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

// call is a check as it came: the parts of a CheckRequest that are read.
type call struct {
	method, path string
	headers      headers
	extensions   extensions

	// What nearly every check has fits in here.
	room          [8]headerField
	extensionRoom [4]extension
}

// headers are a request's headers as Envoy hands them over: names in lower
// case, a repeated header joined with commas, or each apart in a list where the
// filter is set to send raw headers. Both are read, so that neither setting
// hides a repetition.
type headers struct{ fields []headerField }

type headerField struct {
	name, value string
	joined      bool
}

// join sets a header of the map, where a name is only once.
func (h *headers) join(name, value string) {
	for i := range h.fields {
		if f := &h.fields[i]; f.joined && f.name == name {
			f.value = value
			return
		}
	}
	h.fields = append(h.fields, headerField{name: name, value: value, joined: true})
}

// Get gives a header's value and how many times it is there.
func (h *headers) Get(name string) (value string, times int) {
	apart := false
	for i := range h.fields {
		f := &h.fields[i]
		if f.name != name {
			continue
		}
		times++
		if f.joined && apart {
			continue // those of the list come after that of the map
		}
		value, apart = f.value, !f.joined
	}
	return value, times
}

// extensions are what the call's route says to authz.
type extensions []extension

type extension struct{ name, value string }

// get gives an extension's value, and whether it is there.
func (e extensions) get(name string) (string, bool) {
	for _, one := range e {
		if one.name == name {
			return one.value, true
		}
	}
	return "", false
}

// text is get for extensions that mean nothing when they are empty.
func (e extensions) text(name string) string {
	value, _ := e.get(name)
	return value
}

func (e *extensions) set(name, value string) {
	for i := range *e {
		if (*e)[i].name == name {
			(*e)[i].value = value
			return
		}
	}
	*e = append(*e, extension{name, value})
}

// agree says whether a pseudo-header, if it is there, says the same as the
// request's own field.
func (h *headers) agree(name, value string) bool {
	v, times := h.Get(name)
	return times == 0 || (times == 1 && v == value)
}

// read gives the call to decide, or the error that refuses it: that its route
// is no operation's, or that the edge is misconfigured.
func (s *Server) read(c *call) (decision.Request, error) {
	id := c.extensions.text(opExtension)
	if id == operation.Unmatched {
		if c.extensions.text(allowExtension) != "" {
			return decision.Request{}, problem.New(problem.EdgeMethodNotAllowed, "")
		}
		return decision.Request{}, problem.New(problem.EdgeNotFound, "")
	}
	op, ok := s.operations.Lookup(id)
	if !ok {
		return decision.Request{}, fmt.Errorf("the route names no operation of the contract: %q", id)
	}
	if !c.headers.agree(":method", c.method) || !c.headers.agree(":path", c.path) {
		return decision.Request{}, fmt.Errorf("%w: two methods or two paths", operation.ErrMismatch)
	}
	return decision.Request{Operation: op, Method: c.method, Target: c.path, Headers: &c.headers}, nil
}
