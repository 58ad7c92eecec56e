package livehub

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/api/livehubapi"
	"hangar.io/glidepath/internal/problem"
)

const (
	maxLimit     = 1000
	maxNames     = 200
	maxNameBytes = 63
)

// checkQuery refuses a query that cannot be read, and one that gives a
// parameter of the operation twice: which of the two counts, readers along the
// way might not agree on. Other parameters do not matter.
func checkQuery(op api.Operation, r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem.New(problem.BadRequest, "the query is malformed").WithHint("send name=value pairs, percent-encoded, with & between them")
	}
	for _, p := range op.QueryParams {
		if len(query[p.Name]) > 1 {
			return problem.Newf(problem.BadRequest, "%s is given %d times", p.Name, len(query[p.Name])).WithHint("give it once")
		}
	}
	return nil
}

// badParameter answers a parameter that the generated code could not read.
func badParameter(w http.ResponseWriter, r *http.Request, err error) {
	refuse := problem.New(problem.BadRequest, "a parameter is malformed")
	if p, ok := errors.AsType[*livehubapi.InvalidParamFormatError](err); ok {
		refuse = problem.Newf(problem.BadRequest, "%s is malformed", p.ParamName)
		if p.ParamName == "limit" {
			refuse = badLimit()
		}
	}
	problem.Write(w, r, refuse.WithCause(err))
}

func badLimit() *problem.Error {
	return problem.Newf(problem.BadRequest, "limit is not a whole number from 1 to %d", maxLimit)
}

// pageSize reads limit: 0 when it is absent.
func pageSize(limit *int32) (int, error) {
	if limit == nil {
		return 0, nil
	}
	if *limit < 1 || *limit > maxLimit {
		return 0, badLimit()
	}
	return int(*limit), nil
}

// runNames reads pipelineRuns: the distinct names, sorted.
func runNames(given *[]string) ([]string, error) {
	if given == nil || slices.Equal(*given, []string{""}) {
		return nil, nil
	}
	names := slices.Clone(*given)
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		if len(name) > maxNameBytes || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, problem.Newf(problem.BadRequest, "pipelineRuns: %s is not the name of a PipelineRun", quoted(name)).
				WithHint("a name has at most 63 lower-case letters, digits, - and .; names are separated by commas")
		}
	}
	if len(names) > maxNames {
		return nil, problem.Newf(problem.BadRequest, "pipelineRuns has %d different names, more than %d", len(names), maxNames).
			WithHint("ask in several calls")
	}
	return names, nil
}

// quoted gives what a caller sent in a form and length that fit into an answer
// and an audit line.
func quoted(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
