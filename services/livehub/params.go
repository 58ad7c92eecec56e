package livehub

import (
	"errors"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"hangar.io/glidepath/api/livehubapi"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/problem"
)

const (
	maxLimit     = 1000
	maxNames     = 200
	maxNameBytes = 63

	followParam = "follow"
)

// badParameter answers a parameter that the generated code could not read.
func badParameter(w http.ResponseWriter, r *http.Request, err error) {
	refuse := problem.New(problem.BadRequest, "a parameter is malformed")
	if p, ok := errors.AsType[*livehubapi.InvalidParamFormatError](err); ok {
		refuse = problem.Newf(problem.BadRequest, "%s is malformed", p.ParamName)
		switch p.ParamName {
		case "limit":
			refuse = badLimit()
		case followParam:
			refuse = badFollow()
		}
	}
	problem.Write(w, r, refuse.WithCause(err))
}

func badLimit() *problem.Error {
	return problem.Newf(problem.BadRequest, "limit is not a whole number from 1 to %d", maxLimit)
}

func badFollow() *problem.Error {
	return problem.Newf(problem.BadRequest, "%s is neither true nor false", followParam)
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
			return nil, problem.Newf(problem.BadRequest, "pipelineRuns: %s is not the name of a PipelineRun", calls.Quoted(name)).
				WithHint("a name has at most 63 lower-case letters, digits, - and .; names are separated by commas")
		}
	}
	if len(names) > maxNames {
		return nil, problem.Newf(problem.BadRequest, "pipelineRuns has %d different names, more than %d", len(names), maxNames).
			WithHint("ask in several calls")
	}
	return names, nil
}
