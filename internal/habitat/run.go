package habitat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/krake-observer/krake-observer/internal/resync"
	"github.com/krake-observer/krake-observer/internal/supported"
)

// Run runs the controllers until the context ends, or the replica loses its Lease. It returns
// [resync.ErrRestored] if the Lease is older than before: the process then has to start anew.
func Run(ctx context.Context, options Options) error {
	logger, err := options.Logging.Start(os.Stderr)
	if err != nil {
		return err
	}
	config, err := options.Connection.Config(Name)
	if err != nil {
		return err
	}
	if err := supported.CheckServer(config); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if !options.AssumeRegistered {
		if err := register(ctx, config, logger); err != nil {
			return fmt.Errorf("register the CustomResourceDefinition of Habitats (or have an administrator do it, and set --assume-crd-registered): %w", err)
		}
	}
	if err := waitServed(ctx, config); err != nil {
		return err
	}
	lock, err := newLock(config, options, end)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Logger:                 logger,
		HealthProbeBindAddress: options.HealthAddress,
		Metrics:                options.Metrics.Server(),
		Cache:                  cacheOptions(options.Namespaces),
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		// A replica fills its caches before it is elected.
		Controller:                          ctrlconfig.Controller{EnableWarmup: new(true), SkipNameValidation: new(true)},
		LeaderElection:                      options.Election.Elect,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &options.Election.Duration,
		RenewDeadline:                       &options.Election.RenewDeadline,
		RetryPeriod:                         &options.Election.RetryPeriod,
	})
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := add(mgr, recorder{mgr.GetEventRecorder(Name)}, options); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	err = mgr.Start(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, resync.ErrRestored) {
		return cause
	}
	return err
}

// newLock returns the Lease. It has no recorder, because the Event at each restart is of
// no use. It calls restored when the Lease is older than before.
func newLock(config *rest.Config, options Options, restored func(error)) (resourcelock.Interface, error) {
	if !options.Election.Elect {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: options.Namespace, Name: Name},
		Client:     &history{LeasesGetter: client, restored: restored},
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}, nil
}

// add adds the controllers and the probes.
func add(mgr manager.Manager, recorder recorder, options Options) error {
	s := &shared{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: recorder,
		cluster: options.Cluster, filesImage: options.FilesImage, now: time.Now,
	}
	for _, version := range s.versions() {
		if err := version.add(mgr); err != nil {
			return err
		}
	}
	return errors.Join(
		(&rings{s}).add(mgr),
		(&peers{shared: s}).add(mgr),
		(&replacements{s}).add(mgr),
		mgr.AddHealthzCheck("ping", func(*http.Request) error { return nil }),
		mgr.AddReadyzCheck("caches", func(request *http.Request) error {
			ctx, cancel := context.WithTimeout(request.Context(), time.Second)
			defer cancel()
			if !mgr.GetCache().WaitForCacheSync(ctx) {
				return errors.New("not everything is listed yet")
			}
			return nil
		}),
	)
}
