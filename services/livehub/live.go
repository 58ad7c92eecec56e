package livehub

import (
	"context"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/kubelist"
)

// ListLive answers what an app's namespace holds: both lists, in the order of
// the cluster.
func (s *server) ListLive(w http.ResponseWriter, r *http.Request, app string) {
	s.respond(w, r, func(ctx context.Context) (*answer.Answer, error) {
		scope, err := calls.AppScope(r, app)
		if err != nil {
			return nil, err
		}
		runs, tasks, err := s.hub.both(ctx, scope)
		if err != nil {
			return nil, err
		}
		return runs.answer(form{op: "listLive", with: tasks}, func() (*answer.Answer, error) {
			return answer.New(slices.Concat(
				parts(`{"pipelineRuns":[`), runs.list.Elements(),
				parts(`],"taskRuns":[`), tasks.list.Elements(), parts(`]}`))...), nil
		})
	})
}

// both gives the lists of both kinds, read side by side.
func (h *hub) both(ctx context.Context, s calls.Scope) (runs, tasks *snapshot, err error) {
	g, ctx := errgroup.WithContext(ctx)
	get := func(kind kubelist.Kind, into **snapshot) {
		g.Go(func() (err error) {
			*into, err = h.list(ctx, kind, s)
			return err
		})
	}
	get(pipelineRuns, &runs)
	get(taskRuns, &tasks)
	return runs, tasks, g.Wait()
}

// parts makes a part of an answer of text.
func parts(text string) [][]byte { return [][]byte{[]byte(text)} }
