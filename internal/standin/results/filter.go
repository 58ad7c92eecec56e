package results

import (
	"errors"
	"fmt"
	"regexp"

	"cel.dev/cel-go/cel"
)

// filters compiles the filters of lists.
type filters struct {
	records, results *cel.Env
}

// constants stand for texts and numbers in filters.
var constants = map[string]any{
	"PIPELINE_RUN": "tekton.dev/v1.PipelineRun", "TASK_RUN": "tekton.dev/v1.TaskRun",
	"UNKNOWN": "UNKNOWN", "SUCCESS": "SUCCESS", "FAILURE": "FAILURE", "TIMEOUT": "TIMEOUT", "CANCELLED": "CANCELLED",
}

func newFilters() (f filters, err error) {
	common := []cel.EnvOption{cel.Variable("parent", cel.StringType)}
	for name := range constants {
		common = append(common, cel.Variable(name, cel.StringType))
	}
	f.records, err = cel.NewEnv(append(common[:len(common):len(common)],
		cel.Variable("result_name", cel.StringType), cel.Variable("name", cel.StringType),
		cel.Variable("data_type", cel.StringType), cel.Variable("data", cel.DynType))...)
	if err != nil {
		return f, fmt.Errorf("making the filters of records: %w", err)
	}
	f.results, err = cel.NewEnv(append(common[:len(common):len(common)],
		cel.Variable("uid", cel.StringType), cel.Variable("annotations", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("summary", cel.DynType), cel.Variable("create_time", cel.TimestampType), cel.Variable("update_time", cel.TimestampType))...)
	if err != nil {
		return f, fmt.Errorf("making the filters of Results: %w", err)
	}
	return f, nil
}

// errSQL says that the SQL which a filter becomes fails. The real server keeps it
// to itself and answers with an empty list.
var errSQL = errors.New("the SQL of the filter fails")

// undeclared is what the library says of a name that is none; the release of it
// that the real server has says more.
var undeclared = regexp.MustCompile(`undeclared reference to '[^']*'`)

// predicate reports whether a row is selected, or errSQL.
type predicate func(*decoded) (bool, error)

// compile gives the predicate of a filter; the empty one selects everything.
func compile(env *cel.Env, text string) (predicate, error) {
	if text == "" {
		return func(*decoded) (bool, error) { return true, nil }, nil
	}
	parsed, issues := env.Compile(text)
	if issues.Err() != nil {
		text := undeclared.ReplaceAllString(issues.Err().Error(), "$0 (in container '')")
		return nil, invalid("error compiling CEL filters: " + text)
	}
	expr, err := translate(parsed.NativeRep().Expr())
	if errors.Is(err, errSQL) {
		return func(*decoded) (bool, error) { return false, errSQL }, nil
	}
	if err != nil {
		return nil, invalid(err.Error())
	}
	if expr.kind != sqlBool {
		return func(*decoded) (bool, error) { return false, errSQL }, nil
	}
	return func(d *decoded) (bool, error) {
		v, err := expr.eval(d)
		return !v.null && v.truth, err
	}, nil
}
