package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// name is the webhook's user agent and field manager.
	name = "krake-webhook"
	// path is where the API server posts its reviews.
	path = "/mutate-application"
)

// Run runs the webhook until the context ends.
func Run(ctx context.Context, options Options) error {
	logger, err := options.Logging.Start(os.Stderr)
	if err != nil {
		return err
	}
	config, err := options.Connection.Config(name)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Logger:                 logger,
		Cache:                  cacheOf(options),
		HealthProbeBindAddress: options.HealthAddress,
		Metrics:                server.Options{BindAddress: options.MetricsAddress},
	})
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := serve(ctx, mgr, options); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return mgr.Start(ctx)
}

// cacheOf holds one object: the Secret with the certificates.
func cacheOf(options Options) cache.Options {
	one := cache.Config{FieldSelector: fields.OneTermEqualSelector("metadata.name", options.Secret)}
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{options.Namespace: one}},
	}}
}

// serve adds the server, which starts when it has a certificate that the API
// server will accept.
func serve(ctx context.Context, mgr manager.Manager, options Options) error {
	trusted, err := addCertificates(mgr, options)
	if err != nil {
		return err
	}
	serving := &pair{certDir: options.CertDir, logger: mgr.GetLogger()}
	if err := serving.watch(ctx, mgr); err != nil {
		return err
	}
	hooks := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: options.Host,
		Port: options.Port,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) {
			config.GetCertificate = serving.get
		}},
	})
	hooks.Register(path, &admission.Webhook{Handler: handler{}})
	start := manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-trusted:
			return hooks.Start(ctx)
		}
	})
	return errors.Join(
		mgr.Add(start),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("serving", hooks.StartedChecker()),
	)
}
