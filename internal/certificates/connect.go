package certificates

import (
	"cmp"
	"context"
	"math"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
)

// objectCache is a cache that each replica starts like a controller. The manager does not
// recognize it as a cache: it would wait for it, and the API server may be unreachable.
type objectCache struct{ cache.Cache }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (objectCache) NeedLeaderElection() bool { return false }

// connect makes a cache of the two objects, and a client without a cache. It sends no
// request. Because of the name in the field selector, the API server requires the right to
// list and watch only that object.
func connect(to *rest.Config, options Options) (objectCache, client.Client, error) {
	shared, err := rest.HTTPClientFor(to)
	if err != nil {
		return objectCache{}, nil, err
	}
	mapper := knowKinds()
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	two, err := cache.New(to, cache.Options{
		HTTPClient: shared,
		Scheme:     scheme.Scheme,
		Mapper:     mapper,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{
				options.Namespace: {FieldSelector: named(options.Secret)},
			}},
			options.Kind.object(""): {Field: named(options.Configuration)},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return objectCache{}, nil, err
	}
	live, err := client.New(to, client.Options{HTTPClient: shared, Scheme: scheme.Scheme, Mapper: mapper, FieldOwner: options.Name})
	return objectCache{two}, live, err
}

// knowKinds maps the kinds that the package needs. Discovery would need a reachable API
// server.
func knowKinds() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, admissionv1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		mapper.Add(admissionv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	return mapper
}

// syncTimeout returns how long a controller waits for the first list of the two objects. The
// default of controller-runtime, two minutes, would end a process during an outage.
func syncTimeout(own config.Controller) time.Duration {
	return cmp.Or(own.CacheSyncTimeout, math.MaxInt64)
}

// request is always the same: one pass handles Secret and configuration.
func request(context.Context, client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: "certificates"}}}
}
