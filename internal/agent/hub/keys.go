package hub

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/internal/signature"
	"github.com/krake-observer/krake-observer/pkg/application"
)

var publicKeys = types.NamespacedName{Namespace: application.AgentsNamespace, Name: signature.PublicSecret}

// CacheKeys restricts a cache to the Secret with the public keys of the webhook. The agent has the
// right to list and watch this Secret only.
func CacheKeys() cache.ByObject {
	return cache.ByObject{Namespaces: map[string]cache.Config{
		publicKeys.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", publicKeys.Name)},
	}, Transform: cache.TransformStripManagedFields()}
}

// Keys are the public keys of the webhook on the hub, as the cache has them.
type Keys struct {
	reader client.Reader
	logger logr.Logger

	mu      sync.Mutex
	version string
	keys    signature.Keys
}

// WatchKeys makes the cache watch the public keys. It calls changed after each change of them.
func WatchKeys(ctx context.Context, cached cache.Cache, changed func(), logger logr.Logger) (*Keys, error) {
	informer, err := cached.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
		})
	}
	if err != nil {
		return nil, fmt.Errorf("watch the public keys of the webhook: %w", err)
	}
	return &Keys{reader: cached, logger: logger}, nil
}

// Current returns the keys and their version. Without the Secret there are no keys.
func (k *Keys) Current(ctx context.Context) (signature.Keys, string, error) {
	secret := &corev1.Secret{}
	if err := client.IgnoreNotFound(k.reader.Get(ctx, publicKeys, secret, client.UnsafeDisableDeepCopy)); err != nil {
		return nil, "", fmt.Errorf("read Secret %s: %w", publicKeys, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil || k.version != secret.ResourceVersion {
		keys, err := signature.ParseKeys(secret.Data)
		if err != nil {
			k.logger.Error(err, "A public key of the webhook is not used", "secret", publicKeys.String())
		}
		k.keys, k.version = keys, secret.ResourceVersion
	}
	return k.keys, k.version, nil
}
