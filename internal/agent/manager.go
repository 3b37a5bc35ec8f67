package agent

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// newManager makes a manager on the hub, whose cache holds the Applications of
// this cluster, and no other ConfigMap, as the transform makes them. It elects nobody: the
// Leases say who acts.
func newManager(ctx context.Context, options Options, hub, target *rest.Config, transform toolscache.TransformFunc, logger logr.Logger) (manager.Manager, error) {
	selector, err := selectorOf(application.HolderLabel(options.Cluster))
	if err != nil {
		return nil, err
	}
	metrics, err := metricsServer(options, target)
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(hub, manager.Options{
		Logger:         logger,
		MapperProvider: knowConfigMaps,
		NewCache: func(hub *rest.Config, options cache.Options) (cache.Cache, error) {
			inner, err := cache.New(hub, options)
			return endingCache{inner, ctx}, err
		},
		Cache: cache.Options{
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Label: selector, Namespaces: inNamespaces(options.Namespaces.Hub), Transform: transform},
			},
			// Nothing is watched and kept because somebody happened to read it.
			ReaderFailOnMissingInformer: true,
		},
		Controller:             config.Controller{SkipNameValidation: new(true)}, // it is unique in one agent
		HealthProbeBindAddress: options.HealthAddress,
		Metrics:                metrics,
	})
}

// metricsServer gives how the metrics are served. Who may read them, the target
// says: that is where they are read.
func metricsServer(options Options, target *rest.Config) (metricsserver.Options, error) {
	metrics := options.Metrics.Server()
	client, err := rest.HTTPClientFor(target)
	if err != nil {
		return metricsserver.Options{}, err
	}
	filter := metrics.FilterProvider
	metrics.FilterProvider = func(*rest.Config, *http.Client) (metricsserver.Filter, error) { return filter(target, client) }
	return metrics, nil
}

// knowConfigMaps knows the one kind that is wanted of the hub without asking it.
func knowConfigMaps(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	for _, kind := range []string{"ConfigMap", "ConfigMapList"} { // a cache of several namespaces asks for the scope of the list
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return mapper, nil
}

// inNamespaces has a cache ask in these namespaces only, where the agent may; in
// all by one request if there are none.
func inNamespaces(names []string) map[string]cache.Config {
	if len(names) == 0 {
		return nil
	}
	namespaces := make(map[string]cache.Config, len(names))
	for _, name := range names {
		namespaces[name] = cache.Config{}
	}
	return namespaces
}

// endingCache does not keep the agent from ending while the hub has not told it
// all yet: the manager does nothing else but wait for that, whatever its context says.
type endingCache struct {
	cache.Cache

	agent context.Context
}

// WaitForCacheSync implements cache.Cache.
func (c endingCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.agent, cancel)()
	return c.Cache.WaitForCacheSync(ctx) || c.agent.Err() != nil
}
