package agent

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/krake-observer/krake-observer/internal/agent/hub"
	"github.com/krake-observer/krake-observer/internal/options"
)

// newManager makes a manager on the hub. Its cache has the Applications of this cluster, and the public
// keys of the webhook. It elects no leader: the Leases decide which
// replica acts.
func newManager(ctx context.Context, from Options, hubConfig, targetConfig *rest.Config, logger logr.Logger) (manager.Manager, error) {
	selector, err := hub.SelectorOf(from.Cluster)
	if err != nil {
		return nil, err
	}
	metrics, err := metricsServer(from, targetConfig)
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(hubConfig, manager.Options{
		Logger:         logger,
		MapperProvider: knowKinds,
		NewCache: func(config *rest.Config, cached cache.Options) (cache.Cache, error) {
			inner, err := cache.New(config, cached)
			return endingCache{inner, ctx}, err
		},
		Cache: cache.Options{
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Label: selector, Namespaces: options.CacheNamespaces(from.Namespaces.Hub), Transform: cache.TransformStripManagedFields()},
				&corev1.Secret{}:    hub.CacheKeys(),
			},
			// A read of anything else is an error, and begins no watch.
			ReaderFailOnMissingInformer: true,
		},
		Controller:             config.Controller{SkipNameValidation: new(true)}, // it is unique in one agent
		HealthProbeBindAddress: from.HealthAddress,
		Metrics:                metrics,
	})
}

// metricsServer returns how the metrics are served. The target decides who may read them:
// that is where they are read.
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

// knowKinds maps the kinds that the agent needs of the hub, without a request.
func knowKinds(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	// A cache of several namespaces asks for the scope of the list.
	for _, kind := range []string{"ConfigMap", "ConfigMapList", "Secret", "SecretList"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return mapper, nil
}

// endingCache lets the agent end before the cache has synced: the manager waits for the
// sync, whatever its own context says.
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

// unlessRefused fails with the reason for which the agent must not act.
func unlessRefused(refusal func() string) healthz.Checker {
	return func(*http.Request) error {
		if why := refusal(); why != "" {
			return errors.New(why)
		}
		return nil
	}
}

// everywhere is a runnable that begins before the controllers do.
type everywhere struct{ manager.RunnableFunc }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }
