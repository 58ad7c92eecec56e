package load

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/simulator/life"
)

// run is one place in a namespace and the run that has it now. It belongs to one goroutine at a time.
type run struct {
	load       *Load
	namespace  string
	slot       int
	generation int
	name       string
	// world is the run as it is known to be in the cluster, but for what the step under way has changed. Nil: the place is
	// empty.
	world *life.World
	// written is what the cluster has of each object, by name.
	written map[string]state
	fill    map[string]string // what each object is filled with
	stale   bool              // world may not be what is in the cluster
	gone    bool              // the run is no longer in the cluster
}

// state is what is written of an object: its status as JSON and the word in spec.status.
type state struct{ status, word string }

// live takes the run one step further; one that has nothing more to do makes room, and the next one begins.
func (r *run) live(ctx context.Context) error {
	pace := r.load.turns.wait
	if r.world == nil {
		return r.begin(ctx, pace, false)
	}
	if !r.gone {
		if changed, _ := r.world.Step(r.load.cfg.Clock.Now()); changed {
			return r.flush(ctx, pace)
		}
	}
	return r.makeRoom(ctx, pace)
}

// begin asks for the place's next run. Forward puts it somewhere in its life at once.
func (r *run) begin(ctx context.Context, pace turn, forward bool) error {
	sample := r.load.sample(r.namespace, r.slot, r.generation)
	r.name, r.gone = sample.Name, false
	asked := sample.PipelineRun()
	// The controller's label from the start, so that a step is a write.
	asked.Labels[life.LabelPipeline] = sample.Pipeline
	rehearsal, steps, err := r.load.rehearse(asked, -1)
	if err != nil {
		return err
	}
	r.written, r.fill = map[string]state{}, r.load.fillings(rehearsal)
	if err := r.create(ctx, pace, asked, &asked.ObjectMeta); err != nil {
		return err
	}
	r.world = &life.World{Rules: r.load.rules, Run: asked}
	if !forward {
		return nil
	}
	return r.forward(ctx, pace, r.load.random("forward", r.namespace, r.name).IntN(steps))
}

// forward lives some steps at once. They are lived twice: to know which TaskRuns there are by then, and, when those are
// made, to have every time in their statuses later than that.
func (r *run) forward(ctx context.Context, pace turn, steps int) error {
	ahead, _, err := r.load.rehearse(r.world.Run, steps)
	if err != nil {
		return err
	}
	made := map[string]metav1.ObjectMeta{}
	for _, task := range ahead.TaskRuns {
		task.Spec.Status, task.Spec.StatusMessage = "", "" // nobody has cancelled it yet
		if err := r.create(ctx, pace, task, &task.ObjectMeta); err != nil {
			return err
		}
		made[task.Name] = task.ObjectMeta
	}
	for range steps {
		r.world.Step(r.load.cfg.Clock.Now())
	}
	for _, task := range r.world.TaskRuns {
		task.ObjectMeta = made[task.Name]
	}
	return r.flush(ctx, pace)
}

// flush writes what the cluster does not have yet, in a controller's order: TaskRuns are made and cancelled, they move,
// then the run says how it stands.
func (r *run) flush(ctx context.Context, pace turn) error {
	for _, task := range r.world.TaskRuns {
		if _, made := r.written[task.Name]; !made {
			if err := r.create(ctx, pace, task, &task.ObjectMeta); err != nil {
				return err
			}
		}
	}
	for _, task := range r.world.TaskRuns {
		if err := r.write(ctx, pace, task, &task.ObjectMeta, task.Spec.Status, task.Spec.StatusMessage, task.Status); err != nil {
			return err
		}
	}
	whole := r.world.Run
	return r.write(ctx, pace, whole, &whole.ObjectMeta, whole.Spec.Status, "", whole.Status)
}

// write brings spec.status and the status of one object into the cluster, as far as they differ.
func (r *run) write(ctx context.Context, pace turn, object any, meta *metav1.ObjectMeta, word, why string, status any) error {
	text, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encode the status of %s: %w", meta.Name, err)
	}
	have := r.written[meta.Name]
	if have.word != word {
		if err := r.request(ctx, pace, object, meta, word, why); err != nil {
			return err
		}
		have.word = word
		r.written[meta.Name] = have
	}
	if have.status == string(text) {
		return nil
	}
	if err := r.update(ctx, pace, object, meta); err != nil {
		return err
	}
	have.status = string(text)
	r.written[meta.Name] = have
	return nil
}

// makeRoom removes the run and its TaskRuns.
func (r *run) makeRoom(ctx context.Context, pace turn) error {
	for _, task := range r.world.TaskRuns {
		if err := r.remove(ctx, pace, taskRuns(), &task.ObjectMeta); err != nil {
			return err
		}
	}
	if err := r.remove(ctx, pace, pipelineRuns(), &r.world.Run.ObjectMeta); err != nil {
		return err
	}
	r.world = nil
	r.generation++
	return nil
}

// current reads the run anew when it may not be as it is known. A TaskRun that is not there any more, or never came to
// be, is left out; life makes it again or waits for it.
func (r *run) current(ctx context.Context) error {
	if !r.stale || r.world == nil {
		r.stale = false
		return nil
	}
	whole := &life.PipelineRun{}
	switch err := r.read(ctx, pipelineRuns(), r.name, whole); {
	case apierrors.IsNotFound(err), err == nil && whole.UID != r.world.Run.UID:
		r.gone = true
	case err != nil:
		return err
	default:
		r.world.Run = whole
	}
	written := map[string]state{}
	if err := note(written, whole.Name, whole.Status, whole.Spec.Status); err != nil {
		return err
	}
	var tasks []*life.TaskRun
	for _, known := range r.world.TaskRuns {
		task := &life.TaskRun{}
		err := r.read(ctx, taskRuns(), known.Name, task)
		if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(task, r.world.Run) {
			continue
		}
		if err != nil {
			return err
		}
		if err := note(written, task.Name, task.Status, task.Spec.Status); err != nil {
			return err
		}
		tasks = append(tasks, task)
	}
	r.world.TaskRuns, r.written, r.stale = tasks, written, false
	return nil
}

func note(written map[string]state, name string, status any, word string) error {
	text, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encode the status of %s: %w", name, err)
	}
	written[name] = state{status: string(text), word: word}
	return nil
}
