package bench

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"hangar.io/glidepath/internal/devenv"
)

// The app whose live list is measured: 80 runs of about 13 kB each.
const (
	listApp       = "bench"
	listNamespace = "app-" + listApp + "-cicd"
	listRuns      = 80
	listParams    = 100
)

// fillList gives the app its namespace and its runs, the same ones every time.
func fillList(ctx context.Context, a *devenv.APIServer) error {
	if err := a.EnsureServiceAccount(ctx, listNamespace, "default"); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(a.Admin)
	if err != nil {
		return fmt.Errorf("making runs: %w", err)
	}
	runs := client.Resource(schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"}).Namespace(listNamespace)
	chance := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same bytes every time is what is wanted
	for i := range listRuns {
		_, err := runs.Create(ctx, listRun(fmt.Sprintf("run-%03d", i), chance), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making runs: %w", err)
		}
	}
	return nil
}

// listRun is a run whose JSON compresses as real ones do: names that come again and again, digests that never do.
func listRun(name string, chance *rand.Rand) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"tekton.dev/pipeline": "build"}},
		"spec":     map[string]any{"pipelineRef": map[string]any{"name": "build"}, "params": digests(chance, listParams)},
	}}
}

// digests are parameters of 133 bytes of JSON each.
func digests(chance *rand.Rand, n int) []any {
	params := make([]any, n)
	for i := range params {
		digest := make([]byte, 16)
		for j := range digest {
			digest[j] = byte(chance.UintN(256))
		}
		params[i] = map[string]any{
			"name":  fmt.Sprintf("image-%02d", i),
			"value": "registry.example.com/team/service@sha256:" + hex.EncodeToString(digest) + strings.Repeat("0", 32),
		}
	}
	return params
}
