package livehub

import (
	"context"
	"net/http"
	"slices"

	"hangar.io/glidepath/api/livehubapi"
	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/calls"
)

// ListLiveTaskRuns answers the TaskRuns of the named PipelineRuns, in the order
// of the cluster. Without names there is nothing to read.
func (s *server) ListLiveTaskRuns(w http.ResponseWriter, r *http.Request, params livehubapi.ListLiveTaskRunsParams) {
	s.respond(w, r, func(ctx context.Context) (*answer.Answer, error) {
		scope, err := calls.FleetScope(r)
		if err != nil {
			return nil, err
		}
		names, err := runNames(params.PipelineRuns)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return answer.New([]byte(`{"taskRuns":[]}`)), nil
		}
		tasks, err := s.hub.taskRunsOf(ctx, scope, names)
		if err != nil {
			return nil, err
		}
		return tasks.answer(form{op: "listLiveTaskRuns"}, func() (*answer.Answer, error) {
			return answer.New(slices.Concat(parts(`{"taskRuns":[`), tasks.list.Elements(), parts(`]}`))...), nil
		})
	})
}
