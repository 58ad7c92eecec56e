package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// LabelLoad marks all that a load made, with its seed.
const LabelLoad = "simulator.hangar.io/load"

func namespaces() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

// makeNamespaces makes them, and empties those that an earlier load with the same seed left of what it made.
func (l *Load) makeNamespaces(ctx context.Context) error {
	for _, name := range l.Namespaces() {
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		namespace.SetName(name)
		namespace.SetLabels(map[string]string{LabelLoad: l.label()})
		_, err := l.client.Resource(namespaces()).Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldManager})
		if err == nil {
			continue
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make namespace %s: %w", name, err)
		}
		held, err := l.namespace(ctx, name)
		switch {
		case err != nil:
			return err
		case held == nil:
			return fmt.Errorf("namespace %s: %w", name, errForeign)
		}
		if err := l.empty(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// namespace returns the namespace when it is there and this load's, else nil.
func (l *Load) namespace(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	held, err := l.client.Resource(namespaces()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // nothing is no fault here
	case err != nil:
		return nil, fmt.Errorf("get namespace %s: %w", name, err)
	case held.GetLabels()[LabelLoad] != l.label():
		return nil, nil //nolint:nilnil // somebody else's
	default:
		return held, nil
	}
}

// empty removes the load's runs from a namespace, and nobody else's.
func (l *Load) empty(ctx context.Context, name string) error {
	selected := metav1.ListOptions{LabelSelector: LabelLoad + "=" + l.label()}
	for _, resource := range []schema.GroupVersionResource{pipelineRuns(), taskRuns()} {
		err := l.client.Resource(resource).Namespace(name).DeleteCollection(ctx, metav1.DeleteOptions{}, selected)
		if err != nil {
			return fmt.Errorf("remove the %s of %s: %w", resource.Resource, name, err)
		}
	}
	return nil
}

// Remove removes the runs and namespaces that the load made, or an earlier one with the same seed. A namespace in which
// somebody else has runs or pods by now stays, without the load's runs, and Remove says so in its error. So it does of one
// that nothing sees off: it never takes a namespace from the cluster's controller. Call it when Run has returned.
func (l *Load) Remove(ctx context.Context) error {
	var faults []error
	var going []string
	for _, name := range l.Namespaces() {
		held, err := l.namespace(ctx, name)
		if err != nil || held == nil {
			faults = append(faults, err)
			continue
		}
		err = errors.Join(l.empty(ctx, name), l.unused(ctx, name))
		if err == nil {
			uid := held.GetUID()
			err = l.client.Resource(namespaces()).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			faults = append(faults, fmt.Errorf("remove namespace %s: %w", name, err))
			continue
		}
		going = append(going, name)
	}
	faults = append(faults, l.seeOff(ctx, going))
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return nil
}

// unused is an error when somebody has something in the namespace.
func (l *Load) unused(ctx context.Context, name string) error {
	for _, resource := range []schema.GroupVersionResource{pipelineRuns(), taskRuns(), {Version: "v1", Resource: "pods"}} {
		left, err := l.client.Resource(resource).Namespace(name).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return fmt.Errorf("list the %s of %s: %w", resource.Resource, name, err)
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("%s %s is in it: %w", resource.Resource, left.Items[0].GetName(), errForeign)
		}
	}
	return nil
}

const (
	// patience is how long no namespace may make any progress. The API server's own bound for a step of it is less.
	patience = 30 * time.Second
	poll     = 500 * time.Millisecond
)

// seeOff has the deleted namespaces be gone: by the cluster's controller, however long that makes progress, or by the load
// itself where there is said to be none.
func (l *Load) seeOff(ctx context.Context, names []string) error {
	if l.cfg.NoController {
		var faults []error
		for _, name := range names {
			faults = append(faults, l.finalize(ctx, name))
		}
		return errors.Join(faults...)
	}
	versions := map[string]string{}
	moved := l.cfg.Clock.Now()
	for {
		var left []*unstructured.Unstructured
		for _, name := range names {
			held, err := l.namespace(ctx, name)
			if err != nil {
				return err
			}
			version := ""
			if held != nil {
				left = append(left, held)
				version = held.GetResourceVersion()
			}
			if versions[name] != version {
				versions[name], moved = version, l.cfg.Clock.Now()
			}
		}
		if len(left) == 0 {
			return nil
		}
		if l.cfg.Clock.Since(moved) > patience || !l.sleep(ctx, poll) {
			return stuck(left)
		}
	}
}

// errStuck says what to do about namespaces that stay.
var errStuck = errors.New("it is deleted and stays; if nothing on the cluster sees namespaces off, tell the load so (NoController, --load-no-controller)")

// stuck names the namespaces that stay, with what the cluster says is left in them.
func stuck(left []*unstructured.Unstructured) error {
	var faults []error
	for _, namespace := range left {
		why := ""
		conditions, _, _ := unstructured.NestedSlice(namespace.Object, "status", "conditions") // none is said otherwise
		for _, one := range conditions {
			if c, ok := one.(map[string]any); ok && c["status"] == "True" {
				why += fmt.Sprintf(" (%v: %v)", c["type"], c["message"])
			}
		}
		faults = append(faults, fmt.Errorf("namespace %s%s: %w", namespace.GetName(), why, errStuck))
	}
	return errors.Join(faults...)
}

// finalize does the controller's part for a namespace that takes nothing new any more and in which there is nothing.
func (l *Load) finalize(ctx context.Context, name string) error {
	held, err := l.namespace(ctx, name)
	if err != nil || held == nil {
		return err
	}
	if err := l.unused(ctx, name); err != nil {
		return err
	}
	unstructured.RemoveNestedField(held.Object, "spec", "finalizers")
	_, err = l.client.Resource(namespaces()).Update(ctx, held, metav1.UpdateOptions{FieldManager: fieldManager}, "finalize")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("finalize namespace %s: %w", name, err)
	}
	return nil
}
