package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/services/runs/tekton"
)

// outline is what logs and explanations have to know of a run: what TaskRuns it has,
// without their objects, which may be thousands of times as large. It is kept beside
// the run, and for as long.
type outline struct {
	Created  time.Time  `json:"created"`
	Settles  time.Time  `json:"settles,omitzero"` // see listed.settles
	TaskRuns []outlined `json:"taskRuns"`         // in the order of their creation
}

// outlined is a TaskRun of an outline.
type outlined struct {
	Name   string `json:"name"`
	UID    string `json:"uid"`
	Result string `json:"result"`
	// Failure is a tekton.Object of what explains a TaskRun that has failed; none for
	// others.
	Failure json.RawMessage `json:"failure,omitempty"`
}

// at gives the place of the TaskRun of a name, or -1.
func (o outline) at(name string) int {
	return slices.IndexFunc(o.TaskRuns, func(t outlined) bool { return t.Name == name })
}

// outlineBody is no answer. A name at its head says what form it has.
var outlineBody = kind{contentType: answer.JSON, maxBytes: 16 << 20}

// outlinePlace is where the outline of a run is.
func outlinePlace(scope calls.Scope, result string) place {
	return place{kind: outlineBody, of: scope.Key(), part: true, key: "outline1:" + scope.Key() + ":" + result}
}

// outline gives the outline of a finished run. One that was kept, of a run that may
// have more TaskRuns by now, is read anew unless it is enough.
func (s *server) outline(ctx context.Context, scope calls.Scope, result string, enough func(outline) bool) (outline, error) {
	var fresh atomic.Bool
	kept, err := s.documents.get(ctx, outlinePlace(scope, result), func(ctx context.Context, w io.Writer) (time.Duration, error) {
		fresh.Store(true)
		found, err := s.readOutline(ctx, scope, result)
		if err != nil {
			return 0, err
		}
		return s.age(found.created, found.settles(), runAge), found.writeOutline(w)
	})
	if err != nil {
		return outline{}, err
	}
	in, err := kept.Open()
	if err != nil {
		return outline{}, fmt.Errorf("opening the outline of a run: %w", err)
	}
	defer func() { _ = in.Close() }() // it is in memory
	var o outline
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return outline{}, fmt.Errorf("reading the outline of a run: %w", err)
	}
	if fresh.Load() || s.settled(o.Settles) || enough(o) {
		return o, nil
	}
	found, err := s.readOutline(ctx, scope, result)
	if err != nil {
		return outline{}, err
	}
	return found.outline()
}

// readOutline reads a run for its outline. Of its objects it never holds more than
// one, and of all failures what may be kept.
func (s *server) readOutline(ctx context.Context, scope calls.Scope, result string) (listed, error) {
	found, err := s.find(ctx, scope, result)
	if err != nil {
		return listed{}, err
	}
	one := query{full: true}.listed(found)
	found.record.Value = nil
	held := 0
	for t, err := range s.tasks(ctx, scope, found) {
		if err != nil {
			return listed{}, err
		}
		outlined := newListedTask(t.object, t.record)
		if outlined.outcome.Failed() {
			if outlined.failure, err = failure(t.object); err != nil {
				return listed{}, err
			}
		}
		if held += len(outlined.failure); int64(held) > outlineBody.maxBytes {
			return listed{}, fmt.Errorf("%w: an outline", answer.ErrTooLarge)
		}
		one.tasks = append(one.tasks, outlined)
	}
	one.arrange()
	return one, nil
}

// keepOutline keeps the outline of a run that was read with its objects.
func (s *server) keepOutline(ctx context.Context, scope calls.Scope, r *listed) error {
	return s.documents.put(ctx, outlinePlace(scope, r.row.Result), s.age(r.created, r.settles(), runAge), r.writeOutline)
}

// outline gives the outline of a run.
func (r *listed) outline() (outline, error) {
	o := outline{Created: r.created, Settles: r.settles(), TaskRuns: make([]outlined, len(r.tasks))}
	for i, t := range r.tasks {
		f, err := t.explained()
		if err != nil {
			return outline{}, err
		}
		o.TaskRuns[i] = outlined{Name: t.name, UID: t.uid, Result: t.home, Failure: f}
	}
	return o, nil
}

// writeOutline writes the outline of a run.
func (r *listed) writeOutline(w io.Writer) error {
	o, err := r.outline()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(w).Encode(o); err != nil {
		return fmt.Errorf("writing the outline of a run: %w", err)
	}
	return nil
}

// explained gives what is read of a TaskRun that has failed.
func (t *listedTask) explained() ([]byte, error) {
	if t.object == nil || !t.outcome.Failed() {
		return t.failure, nil
	}
	raw, err := t.object.unpack(nil)
	if err != nil {
		return nil, err
	}
	object, err := tekton.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the outline of a run: %w", err)
	}
	return failure(object)
}

// failure gives what an explanation reads of a TaskRun.
func failure(o *tekton.Object) ([]byte, error) {
	raw, err := json.Marshal(o.Failure())
	if err != nil {
		return nil, fmt.Errorf("writing the outline of a run: %w", err)
	}
	return raw, nil
}
