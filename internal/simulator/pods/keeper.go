package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"hangar.io/glidepath/internal/simulator/life"
	"hangar.io/glidepath/internal/standin/kubelet"
)

// Keeper keeps the Pods of TaskRuns as their TaskRuns are. Its methods may be called concurrently, for one TaskRun one at a
// time.
type Keeper struct {
	client kubernetes.Interface
	node   *kubelet.Kubelet
	name   string
	seed   uint64
	clock  clock.WithTicker

	mu    sync.Mutex
	tasks map[taskKey]*kept
}

type taskKey struct{ namespace, name string }

// kept is what is known of one TaskRun's Pods.
type kept struct {
	uid  types.UID
	pods map[string]*pod // by name
}

type pod struct {
	uid    types.UID
	status string // as JSON, as it was written last
	logs   map[string]*log
}

// log is a container's log and what is still to come in it.
type log struct {
	to   *kubelet.Log
	step string
	text text
	next int
	open bool // the step has its turn and has not ended
	done bool
}

// New gives a keeper of Pods on the node, which has to be registered under the name.
func New(client kubernetes.Interface, node *kubelet.Kubelet, name string, seed uint64, clock clock.WithTicker) *Keeper {
	return &Keeper{client: client, node: node, name: name, seed: seed, clock: clock, tasks: map[taskKey]*kept{}}
}

// writeEvery is how often lines that are due are written.
const writeEvery = 250 * time.Millisecond

// Run lets the steps that run write their logs until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := k.clock.NewTicker(writeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			k.write()
		}
	}
}

func (k *Keeper) write() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	for _, task := range k.tasks {
		for _, p := range task.pods {
			for _, l := range p.logs {
				if l.open {
					l.until(now)
				}
			}
		}
	}
}

// until writes the lines that are due by then.
func (l *log) until(now time.Time) {
	for l.next < mostLines && !l.text.at(l.next).After(now) {
		l.to.Append(l.text.at(l.next), []byte(l.text.line(l.step, l.next)))
		l.next++
	}
}

// Sync makes the Pods of the TaskRun as it stands. Call it before the TaskRun's own status is written, so that whoever
// reads of a Pod there finds it.
func (k *Keeper) Sync(ctx context.Context, task *life.TaskRun) error {
	key := taskKey{task.Namespace, task.Name}
	if have := k.task(key); have != nil && have.uid != task.UID {
		if err := k.Forget(ctx, task.Namespace, task.Name); err != nil {
			return err
		}
	}
	wanted := map[string]bool{}
	for _, attempt := range attempts(task) {
		wanted[attempt.PodName] = true
		if err := k.sync(ctx, key, task, attempt); err != nil {
			return fmt.Errorf("pod %s/%s: %w", task.Namespace, attempt.PodName, err)
		}
	}
	have := k.task(key)
	if have == nil {
		return nil
	}
	for name := range have.pods {
		if !wanted[name] {
			if err := k.remove(ctx, key, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Forget removes the Pods of a TaskRun that is gone.
func (k *Keeper) Forget(ctx context.Context, namespace, name string) error {
	key := taskKey{namespace, name}
	have := k.task(key)
	if have == nil {
		return nil
	}
	for pod := range have.pods {
		if err := k.remove(ctx, key, pod); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.tasks, key)
	return nil
}

// task returns a copy that the caller alone uses.
func (k *Keeper) task(key taskKey) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	have := k.tasks[key]
	if have == nil {
		return nil
	}
	copied := &kept{uid: have.uid, pods: map[string]*pod{}}
	for name, p := range have.pods {
		copied.pods[name] = p
	}
	return copied
}

func (k *Keeper) remove(ctx context.Context, key taskKey, name string) error {
	now := int64(0) // no kubelet confirms that the containers have ended
	err := k.client.CoreV1().Pods(key.namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove pod %s/%s: %w", key.namespace, name, err)
	}
	k.node.RemovePod(key.namespace, name)
	k.mu.Lock()
	defer k.mu.Unlock()
	if have := k.tasks[key]; have != nil {
		delete(have.pods, name)
	}
	return nil
}

// sync makes one Pod and its logs as the attempt is.
func (k *Keeper) sync(ctx context.Context, key taskKey, task *life.TaskRun, attempt life.TaskRunStatus) error {
	object := podOf(task, attempt, k.name)
	text, err := json.Marshal(object.Status)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	var have *pod
	if known := k.task(key); known != nil {
		have = known.pods[object.Name]
	}
	if have != nil && have.status == string(text) {
		return nil
	}
	next := &pod{status: string(text), logs: map[string]*log{}}
	if have != nil {
		object.UID, next.logs = have.uid, have.logs
	}
	// The node knows before the cluster does, so that a log can be read as soon as the status says so.
	k.node.SetPod(object.DeepCopy())
	k.logs(next, task, attempt)
	written, err := k.apply(ctx, object, have != nil)
	if err != nil {
		return err
	}
	next.uid = written.UID
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tasks[key] == nil {
		k.tasks[key] = &kept{uid: task.UID, pods: map[string]*pod{}}
	}
	k.tasks[key].pods[object.Name] = next
	return nil
}

// apply creates the Pod unless it is known, and writes its status.
func (k *Keeper) apply(ctx context.Context, object *corev1.Pod, known bool) (*corev1.Pod, error) {
	pods := k.client.CoreV1().Pods(object.Namespace)
	status := object.Status
	if !known {
		created, err := pods.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			if created, err = pods.Get(ctx, object.Name, metav1.GetOptions{}); err == nil && created.OwnerReferences[0].UID != object.OwnerReferences[0].UID {
				return nil, k.outOfTheWay(ctx, created)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("create: %w", err)
		}
		object = created
	}
	object.Status, object.ResourceVersion = status, "" // nobody else reports for this node
	written, err := pods.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("write the status: %w", err)
	}
	return written, nil
}

// outOfTheWay removes the Pod of a former TaskRun of the same name.
func (k *Keeper) outOfTheWay(ctx context.Context, former *corev1.Pod) error {
	now := int64(0)
	uid := former.UID
	err := k.client.CoreV1().Pods(former.Namespace).Delete(ctx, former.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove a former pod: %w", err)
	}
	return fmt.Errorf("one of a former TaskRun was in the way: %w", apierrors.NewConflict(corev1.Resource("pods"), former.Name, nil))
}

// logs begins the logs of the containers that have started and ends those of the ones that have ended.
func (k *Keeper) logs(p *pod, task *life.TaskRun, attempt life.TaskRunStatus) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, step := range attempt.Steps {
		if step.Waiting != nil {
			continue
		}
		l := p.logs[step.Container]
		if l == nil {
			l = &log{to: k.node.NewLog(life.ContainerID(task.Namespace, attempt.PodName, step.Name)), step: step.Name}
			p.logs[step.Container] = l
		}
		begin, end, turn := span(attempt.Steps, i)
		if turn && l.text.begin.IsZero() {
			l.text = newText(k.seed, begin, step.Name, task.Namespace, attempt.PodName)
		}
		switch {
		case l.done:
		case step.Terminated == nil:
			l.open = turn
			if turn {
				l.until(k.clock.Now())
			}
		default:
			if turn {
				l.until(end)
				l.to.Append(end, []byte(farewell(step)))
			}
			l.open, l.done = false, true
			l.to.End()
		}
	}
}

func farewell(step life.StepState) string {
	if step.Terminated.ExitCode != 0 {
		return fmt.Sprintf("error: %s: exit status %d", step.Name, step.Terminated.ExitCode)
	}
	return step.Name + ": done"
}
