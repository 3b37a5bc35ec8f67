// Package certificates keeps the certificates of the webhook's server: a pair
// that is renewed, and the CA that signs it, which is renewed too, without a
// request that fails.
//
// The Secret has both, and the webhook's configuration tells the API servers
// which CAs to trust. A CA is trusted before it is used, and for as long as
// anything that it signed may be served:
//
//	ca.crt          previous-ca.crt  next-ca.crt   what is served  what is trusted
//	A                                              signed by A     A
//	A                                B             signed by A     A, B for at least the overlap
//	B               A                              signed by B     A, B
//
// Every replica does this, without a leader: each writes on the condition that
// nobody else has written. Nothing is written to a disk.
//
// People ask for a new pair by removing tls.crt from the Secret, and for a new
// CA by removing ca.key. To remove ca.crt is no way to end the trust in a CA:
// it is taken over from the configuration. Remove previous-ca.crt for that, when
// the CA is replaced.
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

// fieldOwner is who writes the Secret and the configuration.
const fieldOwner = "krake-webhook"

// Keeper keeps the certificates in the Secret and the CAs in the configuration,
// and has the pair at hand.
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

// Add adds a Keeper to the manager, with a cache of its own: it sees the two
// objects that it is about, so that it needs rights to no others.
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

// ownCache is for the manager to start it with its own cache, before controllers.
type ownCache struct{ cache.Cache }

// GetCache is how the manager knows caches.
func (c ownCache) GetCache() cache.Cache { return c.Cache }

// cacheOf makes a cache of two objects. With the name in the field selector the
// API server asks for rights to list and watch that object, not all.
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
			// Every replica serves, so every replica has to keep up.
			NeedLeaderElection: &everywhere,
			RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, time.Minute),
		}).
		Complete(k)
}

// request is always the same: Secret and configuration are seen to together.
func request[T client.Object](context.Context, T) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: "certificates"}}}
}

// Reconcile makes, publishes and serves what is due.
//
// The Secret is read after the configuration, and not from the cache: who is
// behind with the Secret would take a CA out of the configuration that another
// replica has put there.
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
		return ctrl.Result{}, nil // what the other has written is an event, and we look again
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

// configuration gives the webhook's configuration, nil if there is none: then
// nobody calls the webhook, but it can have its certificates.
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

// keep does to the Secret what is due, and gives what it then holds.
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

// serve takes over a pair. Without one the former is served on.
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

// GetCertificate is for tls.Config: what it gives is what the Secret holds now.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if p := k.serving.Load(); p != nil {
		return &p.serving, nil
	}
	return nil, errors.New("no serving certificate yet")
}

// Trusted is closed when there is a pair for the first time that the API
// servers will accept: there is no use in serving before.
func (k *Keeper) Trusted() <-chan struct{} { return k.trusted }

// Ready tells if the API servers will accept what is served. It is a check of
// health.
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
