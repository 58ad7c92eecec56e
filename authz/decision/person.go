package decision

import (
	"strings"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/internal/problem"
)

// OnBehalfOfHeader names the person a delegate acts for, in lower case as Envoy
// hands it over.
const OnBehalfOfHeader = "x-glidepath-on-behalf-of"

// maxPerson bounds a person's name, in bytes.
const maxPerson = 256

// person gives the person that a call names. An empty header names nobody.
func person(r Request, delegate bool) (string, error) {
	name, times := r.Headers.Get(OnBehalfOfHeader)
	switch {
	case name == "" && times <= 1:
		return "", unnamed(r.Operation, delegate)
	case !delegate:
		return "", problem.New(problem.AuthNotDelegate, "")
	case times > 1 || strings.Contains(name, ","):
		// Envoy joins a repeated header with commas.
		return "", problem.New(problem.BadRequest, "more than one person is named").
			WithHint("send X-Glidepath-On-Behalf-Of once, with a name that has no comma")
	case len(name) > maxPerson || !isPrintable(name):
		return "", problem.New(problem.BadRequest, "the person's name is malformed").
			WithHint("a name has at most 256 printable ASCII characters and no spaces around it")
	}
	return name, nil
}

// unnamed judges a call that names nobody.
func unnamed(op *operation.Operation, delegate bool) error {
	if delegate && op.Purpose == authn.ForWrite {
		return problem.New(problem.AuthPersonMissing, "")
	}
	return nil
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s == strings.TrimSpace(s)
}
