package simulator

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"hangar.io/glidepath/internal/simulator/life"
)

// A cancel that was decided on an old version must not reach a TaskRun that has ended since.
func TestAPatchHoldsOnlyForWhatItWasDecidedOn(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": life.APIVersion, "kind": life.KindTaskRun,
		"metadata": map[string]any{"name": "a", "namespace": "n", "resourceVersion": "41"},
	}}
	client := fake.NewSimpleDynamicClient(runtime.NewScheme(), object)
	s := newSimulator(Config{Namespaces: []string{"n"}}, client)
	err := s.patch(t.Context(), object, map[string]any{"metadata": map[string]any{"labels": map[string]any{"x": "y"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range client.Actions() {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok {
			continue
		}
		var sent struct {
			Metadata struct {
				ResourceVersion string
				Labels          map[string]string
			}
		}
		if err := json.Unmarshal(patch.GetPatch(), &sent); err != nil {
			t.Fatal(err)
		}
		if sent.Metadata.ResourceVersion != "41" || sent.Metadata.Labels["x"] != "y" {
			t.Errorf("sent %s", patch.GetPatch())
		}
		return
	}
	t.Error("no patch was sent")
}
