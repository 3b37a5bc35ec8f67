package discovery

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// Definitions watches the CustomResourceDefinitions of the target, of which it needs
// no more than that they change. Without the right to watch them the agent goes on:
// it notices a new kind some seconds later.
type Definitions struct {
	client metadata.Interface
	// redefine is called with the name of each that came, went or changed.
	redefine func(name string)
	logger   logr.Logger

	mu sync.Mutex
	// logged are the reasons for failures that were logged already.
	logged map[metav1.StatusReason]bool
}

// NewDefinitions makes Definitions that call redefine, which is [Kinds.Redefine].
func NewDefinitions(client metadata.Interface, redefine func(name string), logger logr.Logger) *Definitions {
	return &Definitions{client: client, redefine: redefine, logger: logger, logged: map[metav1.StatusReason]bool{}}
}

// Start watches until the context ends. It implements manager.Runnable.
func (d *Definitions) Start(ctx context.Context) error {
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	informer := metadatainformer.NewFilteredMetadataInformer(d.client, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetTransform(nameOnly); err != nil {
		return err
	}
	if err := informer.SetWatchErrorHandlerWithContext(d.failed); err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(d.handler()); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	return nil
}

// handler reports changes: not what was there at first, and not what a new list only
// repeats.
func (d *Definitions) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initially bool) {
			if !initially {
				d.changed(object)
			}
		},
		UpdateFunc: func(before, after any) {
			if versionOf(before) != versionOf(after) {
				d.changed(after)
			}
		},
		DeleteFunc: d.changed,
	}
}

func (d *Definitions) changed(object any) {
	// The key of a cluster-scoped object is its name, that of a tombstone as well.
	if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		d.redefine(name)
	}
}

// failed logs each reason once: the informer tries again for ever.
func (d *Definitions) failed(_ context.Context, _ *cache.Reflector, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	reason := apierrors.ReasonForError(err)
	if d.logged[reason] || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	d.logged[reason] = true
	d.logger.Info("CustomResourceDefinitions cannot be watched: kinds that change are noticed later", "error", err.Error())
}

// nameOnly is the informer's transform.
func nameOnly(object any) (any, error) {
	definition, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: definition.Name, UID: definition.UID, ResourceVersion: definition.ResourceVersion,
	}}, nil
}

func versionOf(object any) string {
	definition, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return ""
	}
	return definition.ResourceVersion
}
