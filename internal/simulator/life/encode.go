package life

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Encode makes an object of this package one for a dynamic client.
func Encode(object any) (*unstructured.Unstructured, error) {
	encoded := &unstructured.Unstructured{}
	if err := convert(object, &encoded.Object); err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	unstructured.RemoveNestedField(encoded.Object, "metadata", "creationTimestamp")
	return encoded, nil
}

// Decode fills a PipelineRun or a TaskRun from what a dynamic client returned. Fields this package does not know are
// left behind; whoever writes must write to the original.
func Decode(object *unstructured.Unstructured, into any) error {
	if err := convert(object.Object, into); err != nil {
		return fmt.Errorf("decode %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// SetStatus replaces the status of an object by a status of this package.
func SetStatus(object *unstructured.Unstructured, status any) error {
	var encoded map[string]any
	if err := convert(status, &encoded); err != nil {
		return fmt.Errorf("encode %T: %w", status, err)
	}
	object.Object["status"] = encoded
	return nil
}

func convert(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
