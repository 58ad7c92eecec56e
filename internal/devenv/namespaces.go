package devenv

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// DeleteNamespace does what the namespace controller would: it deletes the namespace, then all that is in it, then takes the
// finalizer away, so that a namespace made again under the same name is empty and has another UID.
func (a *APIServer) DeleteNamespace(ctx context.Context, name string) error {
	err := a.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting namespace %s: %w", name, err)
	}
	if err := a.emptyNamespace(ctx, name); err != nil {
		return fmt.Errorf("emptying namespace %s: %w", name, err)
	}
	ns, err := a.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finalizing namespace %s: %w", name, err)
	}
	ns.Spec.Finalizers = nil
	if _, err := a.Client.CoreV1().Namespaces().Finalize(ctx, ns, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("finalizing namespace %s: %w", name, err)
	}
	return nil
}

func (a *APIServer) emptyNamespace(ctx context.Context, name string) error {
	lists, err := discovery.ServerPreferredNamespacedResources(a.Client.Discovery())
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(a.Admin)
	if err != nil {
		return err
	}
	var faults []error
	for _, resource := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"deletecollection"}}, lists) {
		gv, err := schema.ParseGroupVersion(resource.GroupVersion)
		if err != nil {
			return err
		}
		for _, r := range resource.APIResources {
			err := client.Resource(gv.WithResource(r.Name)).Namespace(name).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
				faults = append(faults, fmt.Errorf("deleting %s: %w", r.Name, err))
			}
		}
	}
	return errors.Join(faults...)
}
