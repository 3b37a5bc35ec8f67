// Package certificates maintains the certificates of the webhook's server: a pair, and
// the CA that signs it. It renews both without a failed request.
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
package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// fieldOwner is the field manager of writes to the Secret and the configuration.
const fieldOwner = "krake-webhook"

// Keeper maintains the certificates in the Secret and the CAs in the configuration,
// and has the current pair in memory.
type Keeper struct {
	signer *signer
	// cached has the configuration; live is not cached: see Reconcile.
	cached, live client.Reader
	writer       client.Writer
	now          func() time.Time
	logger       logr.Logger
	expiry       *prometheus.GaugeVec

	// Only Reconcile writes these.
	serving   atomic.Pointer[pair]
	published atomic.Pointer[trust]

	trusted  chan struct{}
	announce sync.Once
}

// Add adds a Keeper to the manager. Its own cache has only the two objects, so that it
// needs no rights to others.
func Add(mgr manager.Manager, options Options, now func() time.Time) (*Keeper, error) {
	gauge, err := expiryGauge(metrics.Registry)
	if err != nil {
		return nil, err
	}
	two, err := cacheOf(mgr, options)
	if err != nil {
		return nil, fmt.Errorf("set up the cache of the certificates: %w", err)
	}
	k := &Keeper{
		signer:  newSigner(options),
		cached:  two,
		live:    mgr.GetAPIReader(),
		writer:  mgr.GetClient(),
		now:     now,
		logger:  mgr.GetLogger().WithName("certificates"),
		expiry:  gauge,
		trusted: make(chan struct{}),
	}
	k.published.Store(&trust{})
	return k, errors.Join(mgr.Add(two), k.watch(mgr, two))
}

// ownCache makes the manager start this cache with its own, before controllers.
type ownCache struct{ cache.Cache }

// GetCache is the method by which the manager recognizes caches.
func (c ownCache) GetCache() cache.Cache { return c.Cache }

// cacheOf makes a cache of two objects. Because of the name in the field selector, the
// API server requires the right to list and watch only that object.
func cacheOf(mgr manager.Manager, options Options) (ownCache, error) {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	two, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{
				options.Namespace: {FieldSelector: named(options.Secret)},
			}},
			&admissionv1.MutatingWebhookConfiguration{}: {Field: named(options.Configuration)},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	return ownCache{two}, err
}

func (k *Keeper) watch(mgr manager.Manager, objects cache.Cache) error {
	everywhere := false
	return ctrl.NewControllerManagedBy(mgr).
		Named("certificates").
		WatchesRawSource(source.Kind(objects, &corev1.Secret{}, handler.TypedEnqueueRequestsFromMapFunc(request[*corev1.Secret]))).
		WatchesRawSource(source.Kind(objects, &admissionv1.MutatingWebhookConfiguration{}, handler.TypedEnqueueRequestsFromMapFunc(request[*admissionv1.MutatingWebhookConfiguration]))).
		WithOptions(controller.Options{
			// Every replica serves, so every replica needs the current pair.
			NeedLeaderElection: &everywhere,
			RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, time.Minute),
		}).
		Complete(k)
}

// request is always the same: one pass handles Secret and configuration.
func request[T client.Object](context.Context, T) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: "certificates"}}}
}

// Reconcile makes, publishes and serves what is due.
//
// It reads the Secret after the configuration, and not from the cache. With an outdated
// Secret it would remove a CA from the configuration that another replica has added.
func (k *Keeper) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	configuration, err := k.configuration(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := k.now()
	published := k.published.Load().observe(configuration, now)
	k.published.Store(&published)

	current, err := k.keep(ctx, published, now)
	if err == nil {
		k.serve(current.pair)
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
	return ctrl.Result{RequeueAfter: k.signer.due(current, published, now)}, nil
}

// configuration returns the webhook's configuration, nil if there is none. No API server
// calls the webhook then, but it can have its certificates.
func (k *Keeper) configuration(ctx context.Context) (*admissionv1.MutatingWebhookConfiguration, error) {
	var configuration admissionv1.MutatingWebhookConfiguration
	err := k.cached.Get(ctx, types.NamespacedName{Name: k.signer.options.Configuration}, &configuration)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the configuration %s: %w", k.signer.options.Configuration, err)
	}
	return &configuration, nil
}

// keep renews what is due in the Secret, and returns the new contents.
func (k *Keeper) keep(ctx context.Context, published trust, now time.Time) (held, error) {
	var secret corev1.Secret
	name := types.NamespacedName{Namespace: k.signer.options.Namespace, Name: k.signer.options.Secret}
	if err := k.live.Get(ctx, name, &secret); err != nil {
		return held{}, fmt.Errorf("read the Secret %s: %w", name, err)
	}
	renewed, done, err := k.signer.renew(read(secret.Data, published, k.signer.dnsName, now), published, now)
	if err != nil {
		return held{}, err
	}
	data := renewed.write(secret.Data)
	if maps.EqualFunc(data, secret.Data, slices.Equal) {
		return renewed, nil
	}
	secret.Data = data
	if err := k.writer.Update(ctx, &secret, client.FieldOwner(fieldOwner)); err != nil {
		return held{}, fmt.Errorf("write the Secret %s: %w", name, err)
	}
	k.logger.Info("certificates changed", "done", done)
	return renewed, nil
}

// publish makes the configuration trust every CA of the Secret, and no other.
func (k *Keeper) publish(ctx context.Context, configuration *admissionv1.MutatingWebhookConfiguration, h held) error {
	if configuration == nil {
		return nil
	}
	patch, err := publication(configuration, h.authorities())
	if patch == nil || err != nil {
		return err
	}
	target := &admissionv1.MutatingWebhookConfiguration{}
	target.Name = configuration.Name
	err = k.writer.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(fieldOwner))
	if apierrors.IsNotFound(err) {
		return nil // deleted a moment ago: its event is on the way
	}
	if err != nil {
		return fmt.Errorf("write the CAs to the configuration %s: %w", configuration.Name, err)
	}
	k.logger.Info("CAs published", "number", len(h.authorities()))
	return nil
}

// serve takes over a pair. Without one the former stays.
func (k *Keeper) serve(p *pair) {
	if p == nil {
		return
	}
	k.expiry.WithLabelValues("server").Set(float64(p.expiry().Unix()))
	k.expiry.WithLabelValues("ca").Set(float64(p.authority.NotAfter.Unix()))
	former := k.serving.Swap(p)
	if former == nil || !bytes.Equal(former.certificate, p.certificate) {
		k.logger.Info("serving certificate loaded", "expires", p.expiry(), "caExpires", p.authority.NotAfter)
	}
}

// GetCertificate is for tls.Config. It returns the pair of the Secret's last version.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if p := k.serving.Load(); p != nil {
		return &p.serving, nil
	}
	return nil, errors.New("no serving certificate yet")
}

// Trusted is closed as soon as there is a pair that the API servers accept. Serving
// before that has no use.
func (k *Keeper) Trusted() <-chan struct{} { return k.trusted }

// Ready returns an error unless the API servers accept the serving certificate. It is a
// health check.
func (k *Keeper) Ready(*http.Request) error {
	p := k.serving.Load()
	if p == nil {
		return errors.New("no serving certificate yet")
	}
	now := k.now()
	if now.Before(p.serving.Leaf.NotBefore) || !now.Before(p.expiry()) {
		return fmt.Errorf("the serving certificate is valid from %s to %s", p.serving.Leaf.NotBefore, p.expiry())
	}
	if _, ok := k.published.Load().since(p.authority); !ok {
		return errors.New("the configuration does not trust the CA of the serving certificate")
	}
	return nil
}
