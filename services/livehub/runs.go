package livehub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"

	"hangar.io/glidepath/api/livehubapi"
	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/kubelist"
	"hangar.io/glidepath/internal/paging"
	"hangar.io/glidepath/internal/problem"
)

const opListLiveRuns = "listLiveRuns"

// ListLiveRuns answers the PipelineRuns of the fleet or of one app: whole and
// in the order of the cluster, or by pages and sorted.
func (s *server) ListLiveRuns(w http.ResponseWriter, r *http.Request, params livehubapi.ListLiveRunsParams) {
	s.respond(w, r, func(ctx context.Context) (*answer.Answer, error) {
		scope, err := calls.FleetScope(r)
		if err != nil {
			return nil, err
		}
		p, err := s.page(scope, params)
		if err != nil {
			return nil, err
		}
		runs, err := s.hub.list(ctx, pipelineRuns, scope)
		if err != nil {
			return nil, err
		}
		return runs.answer(form{op: opListLiveRuns, limit: p.list.Limit, after: p.token}, func() (*answer.Answer, error) {
			if p.list.Limit == 0 {
				return answer.New(slices.Concat(parts(`{"pipelineRuns":[`), runs.list.Elements(), parts(`]}`))...), nil
			}
			return s.pageOf(runs.list, p)
		})
	})
}

// page is which part of a list a call asks for.
type page struct {
	list  paging.List // Limit is 0 for the whole list
	token string
	after paging.Position // nil for the first page
}

func (s *server) page(scope calls.Scope, params livehubapi.ListLiveRunsParams) (page, error) {
	limit, err := pageSize(params.Limit)
	if err != nil {
		return page{}, err
	}
	p := page{list: paging.List{Operation: opListLiveRuns, Scope: scope.Key(), Limit: limit}}
	if params.Continue == nil {
		return p, nil
	}
	if limit == 0 {
		return page{}, problem.New(problem.BadRequest, "continue is given without limit").
			WithHint("pass the limit of the page that it came with")
	}
	p.token = *params.Continue
	if p.after, err = s.tokens.Take(p.list, p.token); errors.Is(err, paging.ErrToken) {
		return page{}, problem.New(problem.BadRequest, "continue is not one that this list gave").WithCause(err).
			WithHint("pass continue unchanged, with the same limit and filters, or begin again without it")
	}
	return p, err
}

// pageOf makes the page's answer: the objects that follow p.after in the order
// of namespace and name, and where the next page begins if any are left.
func (s *server) pageOf(l *kubelist.List, p page) (*answer.Answer, error) {
	order := l.Sorted()
	first := 0
	if p.after != nil {
		first = sort.Search(len(order), func(i int) bool {
			return position(l.Meta(order[i])).Compare(p.after) > 0
		})
	}
	items := order[first:min(first+p.list.Limit, len(order))]
	body := parts(`{"pipelineRuns":[`)
	for n, i := range items {
		if n > 0 {
			body = append(body, []byte(","))
		}
		body = append(body, l.JSON(i))
	}
	if first+len(items) == len(order) {
		return answer.New(append(body, []byte(`]}`))...), nil
	}
	next, err := s.tokens.Give(p.list, position(l.Meta(items[len(items)-1])))
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(next)
	if err != nil {
		return nil, fmt.Errorf("writing a continue token: %w", err)
	}
	return answer.New(append(body, []byte(`],"continue":`), quoted, []byte(`}`))...), nil
}

func position(m kubelist.Meta) paging.Position { return paging.Position{m.Namespace, m.Name} }
