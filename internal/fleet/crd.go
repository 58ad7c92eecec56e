package fleet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definedResource is what a custom resource definition of one version defines.
func definedResource(definition *unstructured.Unstructured) (schema.GroupVersionResource, error) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if len(versions) == 1 {
		if first, ok := versions[0].(map[string]any); ok {
			version, _, _ := unstructured.NestedString(first, "name")
			return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}, nil
		}
	}
	return schema.GroupVersionResource{}, fmt.Errorf("definition %s: want one version", definition.GetName())
}

// established reports whether the API server has taken the definition up.
func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}
