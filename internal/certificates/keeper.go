// Package certificates maintains the certificates of a webhook's server: a pair, and
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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Keeper maintains the certificates in the Secret and the CAs in the configuration,
// and has the current pair in memory.
type Keeper struct {
	signer *signer
	// cached has the configuration. live writes, and reads without a cache: see Reconcile.
	cached client.Reader
	live   client.Client
	now    func() time.Time
	logger logr.Logger
	expiry *prometheus.GaugeVec

	// Only Reconcile writes these.
	serving   atomic.Pointer[pair]
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
	two, live, err := connect(config, options)
	if err != nil {
		return nil, fmt.Errorf("set up the client and the cache of the certificates: %w", err)
	}
	k := &Keeper{
		signer:  newSigner(options),
		cached:  two,
		live:    live,
		now:     now,
		logger:  mgr.GetLogger().WithName("certificates"),
		expiry:  gauge,
		trusted: make(chan struct{}),
	}
	k.published.Store(&trust{})
	return k, errors.Join(mgr.Add(two), k.watch(mgr, two))
}

// watch reconciles when one of the two objects changes.
func (k *Keeper) watch(mgr manager.Manager, objects cache.Cache) error {
	everywhere := false
	enqueue := handler.EnqueueRequestsFromMapFunc(request)
	return ctrl.NewControllerManagedBy(mgr).
		Named("certificates").
		WatchesRawSource(source.Kind(objects, client.Object(&corev1.Secret{}), enqueue)).
		WatchesRawSource(source.Kind(objects, k.signer.options.Kind.object(""), enqueue)).
		WithOptions(controller.Options{
			// Every replica serves, so every replica needs the current pair.
			NeedLeaderElection: &everywhere,
			RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, time.Minute),
			CacheSyncTimeout:   syncTimeout(mgr.GetControllerOptions()),
		}).
		Complete(k)
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
func (k *Keeper) configuration(ctx context.Context) (*configuration, error) {
	object := k.signer.options.Kind.object("")
	err := k.cached.Get(ctx, types.NamespacedName{Name: k.signer.options.Configuration}, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the configuration %s: %w", k.signer.options.Configuration, err)
	}
	return configurationOf(object), nil
}

// keep renews what is due in the Secret, and returns the new contents.
func (k *Keeper) keep(ctx context.Context, published trust, now time.Time) (held, error) {
	var secret corev1.Secret
	name := types.NamespacedName{Namespace: k.signer.options.Namespace, Name: k.signer.options.Secret}
	if err := k.live.Get(ctx, name, &secret); err != nil {
		return held{}, fmt.Errorf("read the Secret %s: %w", name, err)
	}
	renewed, done, err := k.signer.renew(read(secret.Data, published, k.signer.options, now), published, now)
	if err != nil {
		return held{}, err
	}
	data := renewed.write(secret.Data)
	if maps.EqualFunc(data, secret.Data, slices.Equal) {
		return renewed, nil
	}
	secret.Data = data
	if err := k.live.Update(ctx, &secret); err != nil {
		return held{}, fmt.Errorf("write the Secret %s: %w", name, err)
	}
	k.logger.Info("certificates changed", "done", done)
	return renewed, nil
}

// publish makes the configuration trust every CA of the Secret, and no other.
func (k *Keeper) publish(ctx context.Context, configuration *configuration, h held) error {
	if configuration == nil {
		return nil
	}
	patch, err := publication(configuration, h.authorities())
	if patch == nil || err != nil {
		return err
	}
	target := k.signer.options.Kind.object(configuration.name)
	err = k.live.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch))
	if apierrors.IsNotFound(err) {
		return nil // deleted a moment ago: its event is on the way
	}
	if err != nil {
		return fmt.Errorf("write the CAs to the configuration %s: %w", configuration.name, err)
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
