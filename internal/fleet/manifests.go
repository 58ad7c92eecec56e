package fleet

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"hangar.io/glidepath/internal/simulator/life"
)

//go:embed manifests
var manifests embed.FS

// Folders of manifests/, in the order they are applied in.
const (
	folderCRDs    = "manifests/crds"
	folderApp     = "manifests/app" // once for every app
	folderCluster = "manifests/cluster"
	folderRBAC    = "manifests/rbac"
)

// read decodes every document of a folder, file by file in the order of their names, with the replacements made.
func read(folder string, replacements ...string) ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(manifests, folder+"/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("manifests of %s: %w", folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range files {
		text, err := fs.ReadFile(manifests, name)
		if err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
		replaced := strings.NewReplacer(replacements...).Replace(string(text))
		for document := range bytes.SplitSeq([]byte(replaced), []byte("\n---\n")) {
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
				return nil, fmt.Errorf("manifest %s: %w", name, err)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// apps reads the app folder for every namespace that holds runs.
func apps() ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, namespace := range AppNamespaces() {
		app, err := read(folderApp, "APP_NAMESPACE", namespace, "APP_NAME", life.AppOf(namespace))
		if err != nil {
			return nil, err
		}
		objects = append(objects, app...)
	}
	return objects, nil
}

// Resources of the objects in manifests/ and of the sample runs.
var (
	crds         = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	pipelineRuns = schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"}
	taskRuns     = schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "taskruns"}
)

// resourceOf finds where objects of a kind are kept. The fleet's kinds are few and all end in a plain plural.
func resourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	gvk := object.GroupVersionKind()
	plural := strings.ToLower(gvk.Kind) + "s"
	if stem, ok := strings.CutSuffix(plural, "ys"); ok {
		plural = stem + "ies"
	}
	return gvk.GroupVersion().WithResource(plural)
}
