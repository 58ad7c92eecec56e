package runs

import (
	"errors"
	"net/http"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"hangar.io/glidepath/api/runsapi"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/problem"
)

const (
	defaultHours, maxHours = 168, 720
	defaultLimit, maxLimit = 100, 1000
	defaultTests, maxTests = 50, 200
	maxNameBytes           = 63
)

// uid is the form of a Kubernetes UID. What has another never reaches a source.
var uid = regexp.MustCompile(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// checkResult refuses what is no id of a run.
func checkResult(result string) error {
	if !uid.MatchString(result) {
		return problem.Newf(problem.BadRequest, "%s is not the id of a run", calls.Quoted(result)).
			WithHint("it is the uid of the PipelineRun, which listRuns gives as result")
	}
	return nil
}

// checkTaskRun refuses what is no name of a TaskRun.
func checkTaskRun(name string) error {
	if len(name) > maxNameBytes || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return problem.Newf(problem.BadRequest, "%s is not the name of a TaskRun", calls.Quoted(name)).
			WithHint("it is the metadata.name of a TaskRun that getRun gives")
	}
	return nil
}

// testID is the form of the id of a test run.
var testID = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,126}[A-Za-z0-9])?$`)

// checkTest refuses what is no id of a test run.
func checkTest(id string) error {
	if !testID.MatchString(id) {
		return problem.Newf(problem.BadRequest, "%s is not the id of a test run", calls.Quoted(id)).
			WithHint("listTests gives the ids of an app's test runs")
	}
	return nil
}

// testsLimit reads how many test runs a call asks for.
func testsLimit(limit *int32) (int, error) {
	if limit == nil {
		return defaultTests, nil
	}
	if *limit < 1 || *limit > maxTests {
		return 0, outside("limit", maxTests)
	}
	return int(*limit), nil
}

// newQuery reads how much of a list a call asks for.
func newQuery(scope calls.Scope, hours, limit *int32) (query, error) {
	q := query{scope: scope, hours: defaultHours, limit: defaultLimit}
	if hours != nil {
		q.hours = int(*hours)
	}
	if limit != nil {
		q.limit = int(*limit)
	}
	if q.hours < 1 || q.hours > maxHours {
		return query{}, outside("sinceHours", maxHours)
	}
	if q.limit < 1 || q.limit > maxLimit {
		return query{}, outside("limit", maxLimit)
	}
	return q, nil
}

func outside(name string, most int) *problem.Error {
	return problem.Newf(problem.BadRequest, "%s is not a whole number from 1 to %d", name, most)
}

// fullView reads view.
func fullView(view *runsapi.ListRunsParamsView) (bool, error) {
	switch {
	case view == nil, *view == runsapi.ListRunsParamsViewSummary:
		return false, nil
	case *view == runsapi.ListRunsParamsViewFull:
		return true, nil
	default:
		return false, problem.New(problem.BadRequest, "view is neither summary nor full")
	}
}

// bounds of the parameters that are numbers.
var bounds = map[string]int{"sinceHours": maxHours, "limit": maxLimit}

// badParameter answers a parameter that the generated code could not read.
func badParameter(w http.ResponseWriter, r *http.Request, err error) {
	refuse := problem.New(problem.BadRequest, "a parameter is malformed")
	if p, ok := errors.AsType[*runsapi.InvalidParamFormatError](err); ok {
		refuse = problem.Newf(problem.BadRequest, "%s is malformed", p.ParamName)
		if most, ok := bounds[p.ParamName]; ok {
			if strings.HasSuffix(r.URL.Path, "/tests") {
				most = maxTests
			}
			refuse = outside(p.ParamName, most)
		}
	}
	problem.Write(w, r, refuse.WithCause(err))
}
