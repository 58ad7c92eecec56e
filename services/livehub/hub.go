package livehub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/kubelist"
)

// maxAge is how old a list may be when a caller gets it, from the moment when
// its reading began.
const maxAge = 2 * time.Second

// The kinds that are read.
var (
	pipelineRuns = kubelist.Kind{APIVersion: "tekton.dev/v1", Kind: "PipelineRun", Resource: "pipelineruns"}
	taskRuns     = kubelist.Kind{APIVersion: "tekton.dev/v1", Kind: "TaskRun", Resource: "taskruns"}
)

// reader reads the cluster: *kubelist.Client.
type reader interface {
	List(ctx context.Context, q kubelist.Query) (*kubelist.List, error)
	Version(ctx context.Context, q kubelist.Query) (string, error)
	Watch(ctx context.Context, q kubelist.Query, from kubelist.WatchFrom) (*kubelist.Watch, error)
}

// hub gives lists, each read at most once in its maxAge for everyone. A live
// stream takes its lists from here as well where the cluster grants no watch.
type hub struct {
	source reader
	cache  *cache.Cache[*snapshot]
	maxAge time.Duration
}

// list gives all objects of a kind in a scope.
func (h *hub) list(ctx context.Context, kind kubelist.Kind, s calls.Scope) (*snapshot, error) {
	return h.get(ctx, kind.Resource+":"+s.Key(), kubelist.Query{Kind: kind, Namespace: s.Namespace})
}

// taskRunsOf gives the TaskRuns of the named PipelineRuns in a scope. The names
// are sorted and distinct, and there is at least one.
func (h *hub) taskRunsOf(ctx context.Context, s calls.Scope, names []string) (*snapshot, error) {
	joined := strings.Join(names, ",")
	digest := sha256.Sum256([]byte(joined))
	return h.get(ctx, taskRuns.Resource+":"+s.Key()+":"+hex.EncodeToString(digest[:]), kubelist.Query{
		Kind: taskRuns, Namespace: s.Namespace, Labels: "tekton.dev/pipelineRun in (" + joined + ")",
	})
}

func (h *hub) get(ctx context.Context, key string, q kubelist.Query) (*snapshot, error) {
	return h.cache.Get(ctx, key, h.maxAge, func(ctx context.Context) (*snapshot, error) {
		l, err := h.source.List(ctx, q)
		if err != nil {
			return nil, err
		}
		return newSnapshot(l), nil
	})
}
