package runs

import (
	"errors"
	"net/http"
	"regexp"

	"hangar.io/glidepath/api/runsapi"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/problem"
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

// badParameter answers a parameter that the generated code could not read.
func badParameter(w http.ResponseWriter, r *http.Request, err error) {
	refuse := problem.New(problem.BadRequest, "a parameter is malformed")
	if p, ok := errors.AsType[*runsapi.InvalidParamFormatError](err); ok {
		refuse = problem.Newf(problem.BadRequest, "%s is malformed", p.ParamName)
	}
	problem.Write(w, r, refuse.WithCause(err))
}
