// Package namespaces owns which namespace an app has. It watches the names of
// the cluster's namespaces, so that finding one takes the same time whether it
// is there or not, and tells nobody anything by asking the API server.
package namespaces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// Namespace is one namespace. UID is empty for one that does not exist.
type Namespace struct {
	Name, UID string
}

// Resolution is what an app's name leads to.
type Resolution struct {
	// Namespace is the app's namespace or, when the app has none, the one it
	// would have if it were an app.
	Namespace Namespace
	// Other is the second namespace of a name that leads to two, the app's and
	// an InfraService's.
	Other Namespace
}

// Exists says whether the name leads anywhere.
func (r Resolution) Exists() bool { return r.Namespace.UID != "" }

// Ambiguous says whether the name leads to two namespaces.
func (r Resolution) Ambiguous() bool { return r.Other.UID != "" }

// Index knows the namespaces of a cluster. It is safe for concurrent use.
type Index struct {
	informer cache.SharedIndexInformer
}

// NewIndex gives an index that is filled once Run runs.
func NewIndex(client metadata.Interface) (*Index, error) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	informer := metadatainformer.NewFilteredMetadataInformer(client, resource, "", 0, nil, nil).Informer()
	if err := informer.SetTransform(strip); err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(logWatchError); err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	return &Index{informer: informer}, nil
}

// Run keeps the index current until ctx ends. An API server that is away is
// tried again and again; what was known stays known meanwhile.
func (x *Index) Run(ctx context.Context) {
	x.informer.RunWithContext(logr.NewContextWithSlogLogger(ctx, slog.Default()))
}

// ErrNotSynced says that the namespaces are not known yet.
var ErrNotSynced = errors.New("the cluster's namespaces are not known yet")

// Ready returns ErrNotSynced until every namespace was read once.
func (x *Index) Ready() error {
	if !x.informer.HasSynced() {
		return ErrNotSynced
	}
	return nil
}

// Synced is closed once every namespace was read once.
func (x *Index) Synced() <-chan struct{} { return x.informer.HasSyncedChecker().Done() }

// Len gives the number of namespaces that are known.
func (x *Index) Len() int { return len(x.informer.GetStore().ListKeys()) }

// Resolve finds the namespace of an app or InfraService.
//
// A namespace that is being deleted is there until it is gone, as it is for the
// API server: what it still holds may be read. But it gives way to another of
// the same name that stays, so that one stuck in its deletion blocks nobody.
func (x *Index) Resolve(app string) (Resolution, error) {
	if err := x.Ready(); err != nil {
		return Resolution{}, err
	}
	return resolve(app, x.find)
}

// resolve finds an app's namespace among those that find knows.
func resolve(app string, find func(name string) (ns Namespace, ending bool, err error)) (Resolution, error) {
	name := "app-" + app + "-cicd"
	own, ownEnding, err := find(name)
	if err != nil {
		return Resolution{}, err
	}
	infra, infraEnding, err := find("infra-" + app + "-cicd")
	if err != nil {
		return Resolution{}, err
	}
	switch {
	case own.UID == "" && infra.UID == "":
		return Resolution{Namespace: Namespace{Name: name}}, nil
	case own.UID == "" || (ownEnding && !infraEnding && infra.UID != ""):
		return Resolution{Namespace: infra}, nil
	case infra.UID == "" || (infraEnding && !ownEnding):
		return Resolution{Namespace: own}, nil
	}
	return Resolution{Namespace: own, Other: infra}, nil
}

func (x *Index) find(name string) (ns Namespace, ending bool, err error) {
	obj, exists, err := x.informer.GetStore().GetByKey(name)
	if err != nil {
		return Namespace{}, false, fmt.Errorf("looking up namespace %s: %w", name, err)
	}
	if !exists {
		return Namespace{}, false, nil
	}
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return Namespace{}, false, fmt.Errorf("looking up namespace %s: found a %T", name, obj)
	}
	return Namespace{Name: meta.Name, UID: string(meta.UID)}, meta.DeletionTimestamp != nil, nil
}

// strip keeps of a namespace what is used here: labels and annotations of a
// large cluster are megabytes.
func strip(obj any) (any, error) {
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil // the marker of a deletion that the watch missed
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		DeletionTimestamp: meta.DeletionTimestamp,
	}}, nil
}

func logWatchError(ctx context.Context, _ *cache.Reflector, err error) {
	if ctx.Err() == nil {
		slog.WarnContext(ctx, "namespaces not watched, trying again", "error", err)
	}
}
