package operation

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/problem"
)

// Match finds the operation that a method and target (path and query) are a
// call of, as the edge's routes do. The error is GP-EDGE-404 or GP-EDGE-405.
func (t *Table) Match(method, target string) (*Operation, error) {
	var methods []string
	for _, op := range t.ordered {
		if _, err := op.Parse(op.Method, target); err != nil {
			continue
		}
		if op.Method == method {
			return op, nil
		}
		methods = append(methods, op.Method)
	}
	if len(methods) > 0 {
		return nil, problem.New(problem.EdgeMethodNotAllowed, "").WithHint("this path takes " + strings.Join(methods, ", "))
	}
	return nil, problem.New(problem.EdgeNotFound, "")
}

// samples are values that stand for names which a decision does not depend on:
// each name in a path takes one of them.
var samples = [...]string{"x", "00000000-0000-0000-0000-000000000000"}

// Target makes the path and query of a call of the operation about an app, with
// the values given for the names in its path, and with made-up ones for others.
// An operation that may do without an app takes "".
func (o *Operation) Target(app string, values map[string]string) (string, error) {
	left := maps.Clone(values)
	var path strings.Builder
	for _, s := range o.segments {
		text := s.text
		if s.param != nil {
			value, given := values[s.param.name]
			delete(left, s.param.name)
			switch {
			case s.param.name == appParam && app != "":
				value = app
			case given:
			case s.param.name == appParam:
				return "", fmt.Errorf("%s is about one app: name it", o.ID)
			default:
				value = s.param.sample()
			}
			text = url.PathEscape(value)
		}
		path.WriteString("/" + text)
	}
	if len(left) > 0 {
		return "", fmt.Errorf("the path of %s has no %s", o.ID, strings.Join(slices.Sorted(maps.Keys(left)), ", "))
	}
	if o.Scope == api.ScopeApp || app == "" {
		return path.String(), nil
	}
	if o.app == nil {
		return "", fmt.Errorf("%s is about no app", o.ID)
	}
	return path.String() + "?" + url.Values{appParam: {app}}.Encode(), nil
}

func (p *param) sample() string {
	for _, s := range samples {
		if p.check(s) == nil {
			return s
		}
	}
	return samples[0]
}
