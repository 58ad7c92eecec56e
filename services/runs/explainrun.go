package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"hangar.io/glidepath/internal/calls"
	explained "hangar.io/glidepath/services/runs/explain"
	"hangar.io/glidepath/services/runs/results"
	"hangar.io/glidepath/services/runs/tekton"
)

// ExplainRun answers why a finished run failed: an entry for each TaskRun that
// did.
func (s *server) ExplainRun(w http.ResponseWriter, r *http.Request, app, result string) {
	s.respond(w, r, func(ctx context.Context) (*document, error) {
		scope, err := calls.AppScope(r, app)
		if err != nil {
			return nil, err
		}
		if err := checkResult(result); err != nil {
			return nil, err
		}
		return s.documents.get(ctx, explainPlace(scope, result), func(ctx context.Context, w io.Writer) (time.Duration, error) {
			// A log that is not archived yet may be a moment later.
			return listAge, s.writeExplanation(ctx, w, scope, result)
		})
	})
}

// explanation is what explainRun answers.
type explanation struct {
	Result   string            `json:"result"`
	Failures []explained.Entry `json:"failures"`
}

func (s *server) writeExplanation(ctx context.Context, w io.Writer, scope calls.Scope, result string) error {
	run, err := s.outline(ctx, scope, result, func(outline) bool { return false })
	if err != nil {
		return err
	}
	var failed []*tekton.Object
	homes := map[string]string{}
	for _, t := range run.TaskRuns {
		if t.Failure == nil {
			continue
		}
		object, err := tekton.Decode(t.Failure)
		if err != nil {
			return fmt.Errorf("explaining a run: %w", err)
		}
		failed = append(failed, object)
		homes[t.UID] = t.Result
	}
	failures, err := s.failures.Explain(ctx, failed, func(ctx context.Context, uid string) (io.ReadCloser, error) {
		log, err := s.archive.Log(ctx, scope.Namespace, homes[uid], uid)
		if errors.Is(err, results.ErrNoLog) {
			return nil, explained.ErrNoLog
		}
		return log, err
	})
	if err != nil {
		return fmt.Errorf("explaining a run: %w", err)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(explanation{Result: result, Failures: failures})
}
