package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/internal/resync"
	"github.com/krake-observer/krake-observer/internal/signature"
	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	// hubPatience limits a write to the hub, so that a hub that does not answer delays no repair
	// for longer.
	hubPatience = 3 * time.Second
	// maxParsed is how many parsed Applications are cached, and maxParsedBytes how large the
	// ConfigMap of each may be.
	maxParsed, maxParsedBytes = 64, 64 << 10
)

// Store keeps Applications in the ConfigMaps of the hub, as the agent of a cluster sees
// them. It reads from the cache, but never a version older than its own writes. It
// implements reconcile.Applications.
type Store struct {
	client       client.Client
	fieldManager string
	cluster      string
	keys         KeySource
	// parsed are the Applications that were read last, by their version.
	parsed *lru.Cache
	// may returns nil, or why writes are forbidden now.
	may func() error

	mu sync.Mutex
	// written are ConfigMaps whose version the cache may not have yet. Those in missed may not
	// be in the cache at all.
	written map[types.NamespacedName]*corev1.ConfigMap
	missed  map[types.NamespacedName]bool
	// gone are deleted ConfigMaps that the cache still has, by their UID.
	gone map[types.NamespacedName]types.UID
}

// KeySource returns the keys that verify the signatures of Applications, and the version of the keys.
type KeySource func(ctx context.Context) (signature.Keys, string, error)

// NewStore makes the store of a cluster. It writes only while may returns nil.
func NewStore(client client.Client, fieldManager, cluster string, keys KeySource, may func() error) *Store {
	return &Store{
		client: client, fieldManager: fieldManager, cluster: cluster, keys: keys, may: may, parsed: lru.New(maxParsed),
		written: map[types.NamespacedName]*corev1.ConfigMap{}, missed: map[types.NamespacedName]bool{},
		gone: map[types.NamespacedName]types.UID{},
	}
}

// Get returns an Application, nil if there is none.
func (s *Store) Get(ctx context.Context, name types.NamespacedName) (*application.Application, error) {
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
	app, err := s.parse(ctx, cm)
	if err != nil {
		return nil, fmt.Errorf("read Application %s: %w", name, err)
	}
	return app, nil
}

// version identifies the content of a ConfigMap, and the keys that have verified it.
type version struct {
	uid           types.UID
	version, keys string
}

// parse returns the Application of a ConfigMap, with its signature verified. The caller may change it. When one object drifts,
// others of its Application often do, and each repair waits for parse.
func (s *Store) parse(ctx context.Context, cm *corev1.ConfigMap) (*application.Application, error) {
	keys, ofKeys, err := s.keys(ctx)
	if err != nil {
		return nil, err
	}
	key := version{cm.UID, cm.ResourceVersion, ofKeys}
	if found, ok := s.parsed.Get(key); ok {
		return found.(*application.Application).Clone(), nil
	}
	app, err := application.ReadFor(cm, s.cluster)
	if err != nil {
		return nil, err
	}
	app.NotAdmitted = keys.Verify(cm)
	if cm.Size() <= maxParsedBytes {
		s.parsed.Add(key, app.Clone())
	}
	return app, nil
}

// Update writes what changed of an Application: a merge patch with the keys that changed,
// guarded by the version that was read.
func (s *Store) Update(ctx context.Context, app *application.Application) error {
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
	patch := mergePatch(stored, updated)
	if patch == nil {
		app.Stored(stored)
		return nil
	}
	if err := s.patch(ctx, updated, patch); err != nil {
		return fmt.Errorf("update Application %s: %w", app.NamespacedName, err)
	}
	app.Stored(updated)
	s.wrote(app.NamespacedName, updated)
	return nil
}

// Delete deletes an Application. It returns no error if the Application is gone already.
func (s *Store) Delete(ctx context.Context, app *application.Application) error {
	if err := s.may(); err != nil {
		return fmt.Errorf("delete Application %s: %w", app.NamespacedName, err)
	}
	ctx, cancel := context.WithTimeout(ctx, hubPatience)
	defer cancel()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}}
	err := s.client.Delete(ctx, cm, client.Preconditions{UID: &app.UID})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete Application %s: %w", app.NamespacedName, err)
	}
	return nil
}

// GetLive returns an Application that it reads past the cache, which may be behind.
func (s *Store) GetLive(ctx context.Context, live client.Reader, name types.NamespacedName) (*application.Application, error) {
	found, err := s.readLive(ctx, live, name)
	if found == nil || err != nil {
		return nil, err
	}
	s.saw(found)
	return s.Get(ctx, name)
}

// readLive returns the ConfigMap of an Application of the cluster past the cache, nil if there is none.
func (s *Store) readLive(ctx context.Context, live client.Reader, name types.NamespacedName) (*corev1.ConfigMap, error) {
	var found corev1.ConfigMapList
	err := live.List(ctx, &found, client.InNamespace(name.Namespace),
		client.MatchingFields{"metadata.name": name.Name}, client.HasLabels{application.HolderLabel(s.cluster)})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read Application %s: %w", name, err)
	case len(found.Items) == 0:
		return nil, nil
	}
	return &found.Items[0], nil
}

// patch sends a merge patch, and stores the API server's answer in the ConfigMap.
func (s *Store) patch(ctx context.Context, cm *corev1.ConfigMap, patch map[string]any) error {
	if err := s.may(); err != nil {
		return err
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hubPatience)
	defer cancel()
	return s.client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, text), client.FieldOwner(s.fieldManager))
}

// wrote stores the written version until the cache has it.
func (s *Store) wrote(name types.NamespacedName, updated *corev1.ConfigMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	updated.ManagedFields = nil // as in the cache
	s.written[name] = updated
	if _, held := updated.Labels[application.HolderLabel(s.cluster)]; !held {
		delete(s.missed, name) // it is going
	}
}

// RecordCached records that the cache has this ConfigMap. The store then drops an older
// written version.
func (s *Store) RecordCached(cm *corev1.ConfigMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	written := s.written[name]
	if written == nil || s.missed[name] || written.UID != cm.UID {
		return
	}
	if !resync.Newer(written.ResourceVersion, cm.ResourceVersion) {
		delete(s.written, name)
	}
}

// saw takes over a ConfigMap that was read past the cache.
func (s *Store) saw(cm *corev1.ConfigMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	delete(s.gone, name)
	if written := s.written[name]; written != nil && written.UID == cm.UID {
		if order, err := resourceversion.CompareResourceVersion(written.ResourceVersion, cm.ResourceVersion); err == nil && order > 0 {
			return // written since
		}
	}
	s.written[name], s.missed[name] = cm, true
}

// lost records that the ConfigMap of this UID is gone.
func (s *Store) lost(name types.NamespacedName, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.written, name)
	delete(s.missed, name)
	s.gone[name] = uid
}

// keepSeen forgets the ConfigMaps that were read past the cache and that a list no longer
// has. It considers one namespace, or all if the namespace is empty.
func (s *Store) keepSeen(namespace string, listed resync.Versions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.missed, func(name types.NamespacedName, _ bool) bool {
		_, kept := listed[name]
		return !kept && (namespace == metav1.NamespaceAll || namespace == name.Namespace)
	})
}

// newest returns the newer one of the cached and the written version. The caller must
// not change it.
func (s *Store) newest(ctx context.Context, name types.NamespacedName) (*corev1.ConfigMap, error) {
	// The cache may catch up right after it was read, and RecordCached then forgets the
	// written version. A later lookup would take the older version for the newest.
	s.mu.Lock()
	written := s.written[name]
	s.mu.Unlock()
	cached := &corev1.ConfigMap{}
	err := s.client.Get(ctx, name, cached, client.UnsafeDisableDeepCopy)
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := s.written[name]; since != nil {
		written = since
	}
	if uid, ok := s.gone[name]; ok && err == nil && cached.UID == uid {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name.Name)
	}
	delete(s.gone, name)
	if apierrors.IsNotFound(err) {
		if s.missed[name] {
			return written, nil
		}
		delete(s.written, name)
	}
	if err != nil {
		return nil, err
	}
	if written == nil {
		return cached, nil
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written.ResourceVersion)
	if err == nil && order < 0 && (s.missed[name] || cached.UID == written.UID) { // or another one of that name
		return written, nil
	}
	delete(s.written, name)
	delete(s.missed, name)
	return cached, nil
}
