// Package pki makes, checks and renews certificates: a [Pair] in a Secret, for webhooks and
// for the hooks of Pods.
//
// A [Keeper] maintains the certificates of a webhook's server: a pair, and the CA that signs
// it. It renews both without a failed request.
//
// The Secret has both. The webhook's configuration has the CAs that the API servers
// trust. A CA is trusted before it is used, and for as long as a certificate that it
// signed may be served:
//
//	ca.crt          previous-ca.crt  next-ca.crt   what is served  what is trusted
//	A                                              signed by A     A
//	A                                B             signed by A     A, B for at least the overlap
//	B               A                              signed by B     A, B
//
// Every replica does this, without a leader: a write succeeds only if no other client
// has written since. Nothing is written to a disk.
//
// To request a new pair, remove tls.crt from the Secret; for a new CA, remove ca.key.
// Removing ca.crt does not end the trust in a CA, because the package takes it over from
// the configuration. To end it, remove previous-ca.crt after the CA was replaced.
package pki

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Keeper maintains the certificates in the Secret and the CAs in the configuration,
// and has the current pair in memory.
type Keeper struct {
	options Options
	// client reads the configuration from a cache. The Secret is read without one: see Reconcile.
	client  client.Client
	secrets corev1client.SecretsGetter
	now     func() time.Time
	logger  logr.Logger
	expiry  *prometheus.GaugeVec

	// Only Reconcile writes these.
	serving   atomic.Pointer[Pair]
	published atomic.Pointer[trust]

	trusted  chan struct{}
	announce sync.Once
}

// Add adds a Keeper to the manager. Secret and configuration are objects of the API server
// of config, which may differ from the manager's. Add sends no request; while that server
// is unreachable, only the Keeper waits. If the manager has a CacheSyncTimeout, the manager
// ends after that time. Without a registry, the metric is not served.
func Add(mgr manager.Manager, config *rest.Config, registry prometheus.Registerer, options Options, now func() time.Time) (*Keeper, error) {
	gauge, err := expiryGauge(registry)
	if err != nil {
		return nil, err
	}
	k := &Keeper{options: options, now: now, logger: mgr.GetLogger().WithName("certificates"), expiry: gauge, trusted: make(chan struct{})}
	k.published.Store(&trust{})
	both, err := cluster.New(config, k.cacheBoth)
	if err != nil {
		return nil, fmt.Errorf("set up the client and the cache of the certificates: %w", err)
	}
	k.client = both.GetClient()
	if k.secrets, err = corev1client.NewForConfigAndClient(config, both.GetHTTPClient()); err != nil {
		return nil, fmt.Errorf("set up the client of the certificates: %w", err)
	}
	return k, errors.Join(mgr.Add(onEachReplica{both}), k.watch(mgr, both.GetCache()))
}

// onEachReplica is a cache that each replica starts like a controller. The manager does not
// recognize it as a cache: it would wait for it, and the API server may be unreachable.
type onEachReplica struct{ manager.Runnable }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (onEachReplica) NeedLeaderElection() bool { return false }

// cacheBoth restricts the cache to the two objects. Because of the name in the field selector, the
// API server requires the right to list and watch only that object. Discovery of the kinds would
// need a reachable API server.
func (k *Keeper) cacheBoth(options *cluster.Options) {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	options.Cache.ByObject = map[client.Object]cache.ByObject{
		&corev1.Secret{}:             {Namespaces: map[string]cache.Config{k.options.Namespace: {FieldSelector: named(k.options.Secret)}}},
		k.options.newConfiguration(): {Field: named(k.options.Configuration)},
	}
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	options.Client.FieldOwner = k.options.Name
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, admissionv1.SchemeGroupVersion})
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
		mapper.Add(admissionv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"), meta.RESTScopeRoot)
		mapper.Add(admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), meta.RESTScopeRoot)
		return mapper, nil
	}
}

// watch reconciles when one of the two objects changes. One pass handles both.
func (k *Keeper) watch(mgr manager.Manager, both cache.Cache) error {
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: "certificates"}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("certificates").
		WatchesRawSource(source.Kind(both, client.Object(&corev1.Secret{}), enqueue)).
		WatchesRawSource(source.Kind(both, k.options.newConfiguration(), enqueue)).
		WithOptions(controller.Options{
			// Every replica serves, so every replica needs the current pair.
			NeedLeaderElection: new(false),
			RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, time.Minute),
			CacheSyncTimeout:   syncTimeout(mgr.GetControllerOptions()),
		}).
		Complete(k)
}

// syncTimeout returns how long a controller waits for the first list of the two objects. The
// default of controller-runtime, two minutes, would end a process during an outage.
func syncTimeout(own config.Controller) time.Duration {
	return cmp.Or(own.CacheSyncTimeout, math.MaxInt64)
}

// Reconcile makes, publishes and serves what is due.
//
// It reads the Secret after the configuration, and not from the cache. With an outdated
// Secret it would remove a CA from the configuration that another replica has added.
func (k *Keeper) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	configuration := k.options.newConfiguration()
	// Without a configuration, no API server calls the webhook, but it can have its certificates.
	if err := k.client.Get(ctx, client.ObjectKeyFromObject(configuration), configuration); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("read the configuration %s: %w", k.options.Configuration, err)
	}
	now := k.now()
	published := k.published.Load().observe(configuration, now)
	k.published.Store(&published)

	current, err := k.keep(ctx, published, now)
	if err == nil {
		k.serve(current.serving)
		err = k.publish(ctx, configuration, current)
	}
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{}, nil // the write of the other replica is an event, which starts another pass
	case errors.Is(err, context.Canceled):
		return ctrl.Result{}, nil // the manager stops
	case err != nil:
		return ctrl.Result{}, err
	}
	if k.Ready(nil) == nil {
		k.announce.Do(func() { close(k.trusted) })
	}
	return ctrl.Result{RequeueAfter: k.options.due(current, published, now)}, nil
}

// keep renews what is due in the Secret, and returns the new contents.
func (k *Keeper) keep(ctx context.Context, published trust, now time.Time) (renewed secretContents, err error) {
	var done []step
	name := types.NamespacedName{Namespace: k.options.Namespace, Name: k.options.Secret}
	changed, err := UpdateSecret(ctx, k.secrets, name, k.options.Name, func(data map[string][]byte) (map[string][]byte, error) {
		renewed, done, err = k.options.renew(readSecret(data, published, k.options, now), published, now)
		return renewed.write(data), err
	})
	if changed {
		k.logger.Info("certificates changed", "done", done)
	}
	return renewed, err
}

// publish makes the configuration trust every CA of the Secret, and no other.
func (k *Keeper) publish(ctx context.Context, configuration client.Object, c secretContents) error {
	changed, patch := publication(configuration, c.authorities())
	if patch == nil {
		return nil
	}
	err := k.client.Patch(ctx, changed, patch)
	if apierrors.IsNotFound(err) {
		return nil // deleted a moment ago: its event is on the way
	}
	if err != nil {
		return fmt.Errorf("write the CAs to the configuration %s: %w", k.options.Configuration, err)
	}
	k.logger.Info("CAs published", "number", len(c.authorities()))
	return nil
}

// serve takes over a pair. Without one the former stays.
func (k *Keeper) serve(pair *Pair) {
	if pair == nil {
		return
	}
	k.expiry.WithLabelValues("server").Set(float64(pair.Leaf.NotAfter.Unix()))
	k.expiry.WithLabelValues("ca").Set(float64(pair.authority.NotAfter.Unix()))
	former := k.serving.Swap(pair)
	if former == nil || !former.Leaf.Equal(pair.Leaf) {
		k.logger.Info("serving certificate loaded", "expires", pair.Leaf.NotAfter, "caExpires", pair.authority.NotAfter)
	}
}

// GetCertificate is for tls.Config. It returns the pair of the Secret's last version.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := k.serving.Load(); pair != nil {
		return &pair.Certificate, nil
	}
	return nil, errors.New("no serving certificate yet")
}

// Trusted is closed as soon as there is a pair that the API servers accept. Serving
// before that has no use.
func (k *Keeper) Trusted() <-chan struct{} { return k.trusted }

// Ready returns an error unless the API servers accept the serving certificate. It is a
// health check.
func (k *Keeper) Ready(*http.Request) error {
	pair := k.serving.Load()
	if pair == nil {
		return errors.New("no serving certificate yet")
	}
	now := k.now()
	if now.Before(pair.Leaf.NotBefore) || !now.Before(pair.Leaf.NotAfter) {
		return fmt.Errorf("the serving certificate is valid from %s to %s", pair.Leaf.NotBefore, pair.Leaf.NotAfter)
	}
	if _, ok := k.published.Load().seen[string(pair.authority.Raw)]; !ok {
		return errors.New("the configuration does not trust the CA of the serving certificate")
	}
	return nil
}

// expiryGauge makes the gauge of the expiry of certificates, and registers it if there is
// a registry. All Keepers of a registry share it.
func expiryGauge(registry prometheus.Registerer) (*prometheus.GaugeVec, error) {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "krake_webhook_certificate_expiry_timestamp_seconds",
		Help: "When the serving certificate and the CA that signed it expire (seconds since 1970).",
	}, []string{"certificate"})
	if registry == nil {
		return gauge, nil
	}
	err := registry.Register(gauge)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return already.ExistingCollector.(*prometheus.GaugeVec), nil
	}
	if err != nil {
		return nil, fmt.Errorf("register the metric of the certificates: %w", err)
	}
	return gauge, nil
}
