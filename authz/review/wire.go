package review

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The forms in which a review goes and comes back. The API server reads and
// writes protobuf in a fraction of the time that JSON takes it and us. What
// stands in for one may answer with JSON all the same.
const (
	protobufType = "application/vnd.kubernetes.protobuf"
	jsonType     = "application/json"
)

// magic starts every object in protobuf.
var magic = []byte{'k', '8', 's', 0}

// message is a review as Kubernetes' types encode it.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal(raw []byte) error
}

// encode gives a review of a kind in protobuf.
func encode(kind metav1.TypeMeta, review message) ([]byte, error) {
	raw, err := review.Marshal()
	if err != nil {
		return nil, errors.New("the review has no form on the wire")
	}
	object := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind}, Raw: raw}
	body := make([]byte, len(magic)+object.Size())
	if _, err := object.MarshalTo(body[copy(body, magic):]); err != nil {
		return nil, errors.New("the review has no form on the wire")
	}
	return body, nil
}

// decode reads a review of the kind in either form: no JSON starts as an object
// in protobuf does. Its errors show nothing of it.
func decode(raw []byte, kind metav1.TypeMeta, into message) error {
	var got metav1.TypeMeta
	if object, ok := bytes.CutPrefix(raw, magic); ok {
		var u runtime.Unknown
		if u.Unmarshal(object) != nil || into.Unmarshal(u.Raw) != nil {
			return errors.New("the answer is not the protobuf of a review")
		}
		got = metav1.TypeMeta{APIVersion: u.APIVersion, Kind: u.Kind}
	} else if json.Unmarshal(raw, &got) != nil || json.Unmarshal(raw, into) != nil {
		return errors.New("the answer is not the JSON of a review")
	}
	if got != kind {
		return fmt.Errorf("the answer is no %s", kind.Kind)
	}
	return nil
}
