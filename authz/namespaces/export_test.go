package namespaces

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kept gives what the index holds of a namespace.
func (x *Index) Kept(name string) *metav1.PartialObjectMetadata {
	obj, _, _ := x.informer.GetStore().GetByKey(name)
	meta, _ := obj.(*metav1.PartialObjectMetadata)
	return meta
}
