package simulator

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"hangar.io/glidepath/internal/simulator/life"
)

const fieldManager = "glidepath-simulator"

func resourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	if object.GetKind() == life.KindTaskRun {
		return taskRuns()
	}
	return pipelineRuns()
}

func (s *Simulator) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	return s.client.Resource(resourceOf(object)).Namespace(object.GetNamespace())
}

// writeStatus replaces the status of the object as it was read. It reports false when that was no change at all, which
// no watch will tell of.
func (s *Simulator) writeStatus(ctx context.Context, object *unstructured.Unstructured, status any) (changed bool, err error) {
	written := object.DeepCopy()
	if err := life.SetStatus(written, status); err != nil {
		return false, err
	}
	answer, err := s.resource(object).UpdateStatus(ctx, written, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return false, fmt.Errorf("write status: %w", err)
	}
	version := answer.GetResourceVersion()
	return version == "" || version != object.GetResourceVersion(), nil
}

// patch merges into the object if it is still as it was read.
func (s *Simulator) patch(ctx context.Context, object *unstructured.Unstructured, patch map[string]any) error {
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = object.GetResourceVersion()
	patch["metadata"] = metadata
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	_, err = s.resource(object).Patch(ctx, object.GetName(), types.MergePatchType, text, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	return nil
}

// delete removes the object that was read, not one that has its name now. That it is gone already is no error.
func (s *Simulator) delete(ctx context.Context, object *unstructured.Unstructured) error {
	uid := object.GetUID()
	err := s.resource(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}
