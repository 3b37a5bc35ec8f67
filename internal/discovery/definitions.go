package discovery

import (
	"context"
	"errors"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// Definitions watches the CustomResourceDefinitions of the target. It is optional: an
// agent without the right to watch them notices a new kind some seconds later.
type Definitions struct {
	Client metadata.Interface
	// Redefine is called with the name of each definition that was created, changed or
	// deleted. It is [Kinds.Redefine].
	Redefine func(name string)
	Logger   logr.Logger

	// logged are the reasons of failures that were logged already.
	logged sync.Map
}

// Start watches until the context ends. It implements manager.Runnable.
func (d *Definitions) Start(ctx context.Context) error {
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	informer := metadatainformer.NewFilteredMetadataInformer(d.Client, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	_, err := informer.AddEventHandler(d.handler())
	if err := errors.Join(err, informer.SetTransform(nameOnly), informer.SetWatchErrorHandlerWithContext(d.logFailure)); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	return nil
}

// handler reports changes, without the definitions of the first list, and without those
// that a later list only repeats.
func (d *Definitions) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initially bool) {
			if !initially {
				d.reportChange(object)
			}
		},
		UpdateFunc: func(before, after any) {
			if versionOf(before) != versionOf(after) {
				d.reportChange(after)
			}
		},
		DeleteFunc: d.reportChange,
	}
}

func (d *Definitions) reportChange(object any) {
	// The key of a cluster-scoped object is its name, also that of a tombstone.
	if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		d.Redefine(name)
	}
}

// logFailure logs each reason once, because the informer never stops to retry.
func (d *Definitions) logFailure(_ context.Context, _ *cache.Reflector, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	if _, logged := d.logged.LoadOrStore(apierrors.ReasonForError(err), true); !logged {
		d.Logger.Info("CustomResourceDefinitions cannot be watched: kinds that change are noticed later", "error", err.Error())
	}
}

// nameOnly is the informer's transform: it drops what is large.
func nameOnly(object any) (any, error) {
	if definition, ok := object.(*metav1.PartialObjectMetadata); ok {
		definition.Labels, definition.Annotations, definition.ManagedFields = nil, nil, nil
	}
	return object, nil
}

func versionOf(object any) string {
	if definition, ok := object.(*metav1.PartialObjectMetadata); ok {
		return definition.ResourceVersion
	}
	return ""
}
