package agent

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// store keeps Applications in the ConfigMaps of the hub. It reads from the
// cache, but never less than it has written itself.
type store struct {
	client       client.Client
	fieldManager string

	mu sync.Mutex
	// written are ConfigMaps that the cache may not have yet.
	written map[types.NamespacedName]*corev1.ConfigMap
}

func newStore(client client.Client, fieldManager string) *store {
	return &store{client: client, fieldManager: fieldManager, written: map[types.NamespacedName]*corev1.ConfigMap{}}
}

// Get implements reconcile.Applications.
func (s *store) Get(ctx context.Context, name types.NamespacedName) (*application.Application, error) {
	cm, err := s.newest(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Application %s: %w", name, err)
	}
	if !application.IsApplication(cm) {
		return nil, nil
	}
	app, err := application.Read(cm)
	if err != nil {
		return nil, fmt.Errorf("read Application %s: %w", name, err)
	}
	return app, nil
}

// Update implements reconcile.Applications: a merge patch with the keys that
// changed, guarded by the version that was read.
func (s *store) Update(ctx context.Context, app *application.Application) error {
	stored, err := s.newest(ctx, app.NamespacedName)
	if err != nil {
		return fmt.Errorf("update Application %s: %w", app.NamespacedName, err)
	}
	if stored.ResourceVersion != app.Version {
		return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, app.Name,
			fmt.Errorf("the Application %s changed while it was worked on", app.NamespacedName))
	}
	updated := stored.DeepCopy()
	if err := app.Record(updated); err != nil {
		return fmt.Errorf("update Application %s: %w", app.NamespacedName, err)
	}
	if equality.Semantic.DeepEqual(stored, updated) {
		return nil
	}
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, updated, patch, client.FieldOwner(s.fieldManager)); err != nil {
		return fmt.Errorf("update Application %s: %w", app.NamespacedName, err)
	}
	app.Version = updated.ResourceVersion
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written[app.NamespacedName] = updated
	return nil
}

// newest gives the newer of what is cached and what was written. It must not
// be changed.
func (s *store) newest(ctx context.Context, name types.NamespacedName) (*corev1.ConfigMap, error) {
	cached := &corev1.ConfigMap{}
	err := s.client.Get(ctx, name, cached)
	s.mu.Lock()
	defer s.mu.Unlock()
	written := s.written[name]
	if apierrors.IsNotFound(err) {
		delete(s.written, name)
	}
	if err != nil {
		return nil, err
	}
	if written == nil {
		return cached, nil
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written.ResourceVersion)
	if err == nil && order < 0 && cached.UID == written.UID {
		return written, nil
	}
	delete(s.written, name)
	return cached, nil
}
