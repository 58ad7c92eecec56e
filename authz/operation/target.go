package operation

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"hangar.io/glidepath/internal/problem"
)

// MaxTargetBytes bounds a request's path and query.
const MaxTargetBytes = 16 << 10

// ErrMismatch says that a request is not one of the operation that its route
// names: the edge and authz disagree about the contract.
var ErrMismatch = errors.New("the request does not fit the operation of its route")

// Target is what a call's path and query say that a decision needs.
type Target struct {
	// App is the app that the call names; empty when it names none, or not in
	// a form that could be one.
	App string
	// Malformed is GP-API-400 when a name in the path, or app in the query, is
	// not one. It waits until the caller is known to be anyone at all.
	Malformed *problem.Error
}

// Parse reads a call's method and target (path and query). Its error is
// ErrMismatch.
func (o *Operation) Parse(method, target string) (Target, error) {
	path, query, _ := strings.Cut(target, "?")
	if method != o.Method || !strings.HasPrefix(path, "/") {
		return Target{}, ErrMismatch
	}
	var t Target
	rest := path[1:]
	for i, s := range o.segments {
		text, more, found := strings.Cut(rest, "/")
		last := i == len(o.segments)-1
		if found == last || (s.param == nil && text != s.text) {
			return Target{}, ErrMismatch
		}
		if s.param != nil {
			t.name(s.param, text)
		}
		rest = more
	}
	if len(target) > MaxTargetBytes || !isVisible(target) {
		t.refuse(problem.New(problem.BadRequest, "the path and query are too long, or hold what no URL holds"))
	}
	if o.app != nil {
		t.query(o.app, query)
	}
	return t, nil
}

// Canonical gives a target that a decision reads as the given one, about the
// app that it was parsed to: its path, and of its query nothing but the app.
func (o *Operation) Canonical(target, app string) string {
	path, _, _ := strings.Cut(target, "?")
	if o.app != nil && app != "" {
		return path + "?" + url.Values{o.app.name: {app}}.Encode()
	}
	return path
}

// followParam names the query parameter with which an answer follows what it is
// about for as long as it goes on.
const followParam = "follow"

// Streams says whether the answer to a call may stay open: that of a stream
// always, and of an operation that can follow when the call asks for that.
func (o *Operation) Streams(target string) bool {
	if o.Stream {
		return true
	}
	if !o.follows {
		return false
	}
	_, query, _ := strings.Cut(target, "?")
	values, err := url.ParseQuery(query)
	return err == nil && values.Has(followParam)
}

// name takes the value of a path parameter.
func (t *Target) name(p *param, value string) {
	if err := p.check(value); err != nil {
		t.refuse(err)
		return
	}
	if p.name == appParam {
		t.App = value
	}
}

// query takes the app of an operation that has it in its query. The query is read as net/url reads
// it, which is how backends read theirs.
func (t *Target) query(p *param, query string) {
	if query == "" {
		return
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		t.refuse(problem.New(problem.BadRequest, "the query is malformed"))
		return
	}
	apps, sent := values[p.name]
	switch {
	case !sent:
	case len(apps) > 1:
		t.refuse(problem.New(problem.BadRequest, "app= is sent more than once").WithHint("name one app"))
	case apps[0] == "":
		t.refuse(problem.New(problem.BadRequest, "app= is empty").WithHint("name an app, or leave app= out"))
	default:
		t.name(p, apps[0])
	}
}

// refuse keeps the first fault.
func (t *Target) refuse(err *problem.Error) {
	if t.Malformed == nil {
		t.Malformed = err
	}
}

func (p *param) check(value string) *problem.Error {
	if len(value) <= p.maxLength && p.re.MatchString(value) {
		return nil
	}
	return problem.Newf(problem.BadRequest, "%s is not a valid name", p.name).
		WithHint(fmt.Sprintf("%s has at most %d characters and matches %s", p.name, p.maxLength, p.pattern))
}

// isVisible says whether s has visible ASCII characters only, and no fragment.
func isVisible(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	return true
}
