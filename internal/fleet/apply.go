package fleet

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	// fieldManager owns what Apply writes. It takes fields over from whoever changed them: the sample is as written here.
	fieldManager = "glidepath-fleet"
	// applyTimeout bounds Apply as a whole, servedTimeout the wait for the custom resources.
	applyTimeout  = 2 * time.Minute
	servedTimeout = 30 * time.Second
	servedPoll    = 100 * time.Millisecond
)

// Apply makes the API server hold the sample fleet: custom resource definitions, namespaces, RBAC, callers and some
// objects of every kind the gateway reads. It is idempotent (server-side apply; a sample run that exists is left to
// whoever moves it) and returns when all of it can be read. It needs the rights of an administrator.
func Apply(ctx context.Context, cfg *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	unlimited := rest.CopyConfig(cfg)
	unlimited.QPS = -1 // one request after another is bound enough
	client, err := dynamic.NewForConfig(unlimited)
	if err != nil {
		return fmt.Errorf("apply the sample fleet: %w", err)
	}
	if err := applyAll(ctx, client, time.Now()); err != nil {
		return fmt.Errorf("apply the sample fleet: %w", err)
	}
	return nil
}

func applyAll(ctx context.Context, client dynamic.Interface, now time.Time) error {
	definitions, err := read(folderCRDs)
	if err != nil {
		return err
	}
	perApp, err := apps()
	if err != nil {
		return err
	}
	shared, err := read(folderCluster)
	if err != nil {
		return err
	}
	rbac, err := read(folderRBAC)
	if err != nil {
		return err
	}
	if err := applyObjects(ctx, client, definitions); err != nil {
		return err
	}
	for _, definition := range definitions {
		if err := waitServed(ctx, client, definition); err != nil {
			return err
		}
	}
	for _, objects := range [][]*unstructured.Unstructured{namespacesOf(perApp, shared), perApp, shared, rbac} {
		if err := applyObjects(ctx, client, objects); err != nil {
			return err
		}
	}
	return applyRuns(ctx, client, now)
}

// namespacesOf picks the namespaces, which everything else is in, with the ServiceAccount that a controller of the
// cluster would make in each; a cluster of an API server alone has no such controller.
func namespacesOf(lists ...[]*unstructured.Unstructured) []*unstructured.Unstructured {
	var picked []*unstructured.Unstructured
	for _, list := range lists {
		for _, object := range list {
			if object.GetKind() != "Namespace" {
				continue
			}
			account := &unstructured.Unstructured{}
			account.SetAPIVersion("v1")
			account.SetKind("ServiceAccount")
			account.SetName("default")
			account.SetNamespace(object.GetName())
			picked = append(picked, object, account)
		}
	}
	return picked
}

func applyObjects(ctx context.Context, client dynamic.Interface, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		_, err := client.Resource(resourceOf(object)).Namespace(object.GetNamespace()).
			Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if err != nil {
			return fmt.Errorf("%s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
		}
	}
	return nil
}

// waitServed returns when the definition is established and its resource answers a list.
func waitServed(ctx context.Context, client dynamic.Interface, definition *unstructured.Unstructured) error {
	resource, err := definedResource(definition)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, servedPoll, servedTimeout, true, func(ctx context.Context) (bool, error) {
		current, err := client.Resource(crds).Get(ctx, definition.GetName(), metav1.GetOptions{})
		if err != nil || !established(current) {
			return false, err
		}
		_, err = client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait until %s is served: %w", definition.GetName(), err)
	}
	return nil
}
