package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/semaphore"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/internal/discovery"
	"github.com/krake-observer/krake-observer/internal/pki"
	"github.com/krake-observer/krake-observer/internal/supported"
	"github.com/krake-observer/krake-observer/internal/webhook/limit"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

const (
	// path is where the API server posts its reviews.
	path = "/mutate-application"
	// syncTimeout limits how long the webhook waits at its start to list its certificates. It
	// ends after that.
	syncTimeout = 2 * time.Minute
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
	if err := supported.CheckServer(config); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Logger:                 logger,
		Controller:             ctrlconfig.Controller{CacheSyncTimeout: syncTimeout},
		HealthProbeBindAddress: options.HealthAddress,
		Metrics:                options.Metrics.Server(),
	})
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := serve(mgr, options); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return mgr.Start(ctx)
}

// serve adds the server, which starts when it has a certificate that the API server
// accepts.
func serve(mgr manager.Manager, options Options) error {
	keeper, err := pki.Add(mgr, mgr.GetConfig(), metrics.Registry, options.Certificates, time.Now)
	if err != nil {
		return err
	}
	hooks := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host:    options.Host,
		Port:    options.Port,
		TLSOpts: []func(*tls.Config){limit.NewHandshakes().Serve(keeper.GetCertificate)},
	})
	secrets, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	keys := &signing{secrets: secrets, namespace: options.Certificates.Namespace, logger: mgr.GetLogger().WithName("signing")}
	answering, err := newHandler(mgr, options, keys)
	if err != nil {
		return err
	}
	draining := &drain{next: limit.NewLanes(&admission.Webhook{Handler: answering}, time.Now)}
	hooks.Register(path, draining)
	start := manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-keeper.Trusted():
			return draining.serve(ctx, hooks.Start)
		}
	})
	return errors.Join(
		mgr.Add(start),
		mgr.Add(keys),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("serving", hooks.StartedChecker()),
		mgr.AddReadyzCheck("certificate", keeper.Ready),
		mgr.AddReadyzCheck("signing-key", keys.Ready),
	)
}

func newHandler(mgr manager.Manager, options Options, keys *signing) (*handler, error) {
	reviews, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	dryRunner, err := newDryRunner(mgr.GetConfig(), options.DryRunTimeout)
	if err != nil {
		return nil, err
	}
	return &handler{
		scope:      options.Reach.Scope,
		accounts:   mutate.Accounts{Required: options.RequireServiceAccount},
		urlSources: options.URLSources,
		kinds:      discovery.NewGuesser(mgr.GetRESTMapper(), clock.RealClock{}),
		authority:  newAuthority(reviews.SubjectAccessReviews(), clock.RealClock{}),
		dryRunner:  dryRunner,
		signing:    keys,
		computing:  semaphore.NewWeighted(computingAtOnce),
		now:        time.Now,
		logger:     mgr.GetLogger(),
	}, registerMetrics()
}
