package streams_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"hangar.io/glidepath/internal/fleet"
)

// large has large objects change where one viewer sleeps, by more than what is between holds for it: the kernel has several
// megabytes at each hop.
func (w *world) large(ctx context.Context) error {
	const objects, rounds, size = 4, 150, 32 << 10
	tasks := resource(w.cluster, 1, fleet.NamespaceOf(apart))
	group, ctx := errgroup.WithContext(ctx)
	for i := range objects {
		group.Go(func() error {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "tekton.dev/v1", "kind": "TaskRun"}}
			o.SetName(fmt.Sprintf("large-%d", i))
			if _, err := tasks.Create(ctx, o, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			for n := range rounds {
				patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"large": fmt.Sprint(n) + strings.Repeat("x", size)}}})
				if err != nil {
					return err
				}
				if _, err := tasks.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					return err
				}
			}
			return tasks.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
		})
	}
	return group.Wait()
}
