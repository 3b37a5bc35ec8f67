package habitat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/krake-observer/krake-observer/internal/resync"
)

// Options of the controllers.
type Options struct {
	Config  *rest.Config
	Logger  logr.Logger
	Metrics metricsserver.Options
	// HealthAddress is the address of the probes; "0" disables them.
	HealthAddress string

	// Cluster is the name by which Applications select the agent of this cluster.
	Cluster string
	// Namespaces limits the controllers to these namespaces; empty means all.
	Namespaces []string
	// AssumeRegistered: the controllers do not create the CustomResourceDefinition.
	AssumeRegistered bool
	// FilesImage is the image of the init container that copies files.
	FilesImage string
	// Recheck is the interval in which each Habitat is reconciled without an event.
	Recheck time.Duration

	// LeaseNamespace has the Lease with which one of several replicas is elected.
	// Without Elect there is one replica.
	LeaseNamespace                            string
	Elect                                     bool
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Run runs the controllers until the context ends, or the replica loses its Lease. It returns
// [resync.ErrRestored] if the Lease is older than before: the process then has to start anew.
func Run(ctx context.Context, options Options) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if !options.AssumeRegistered {
		if err := register(ctx, options.Config, options.Logger); err != nil {
			return fmt.Errorf("register the CustomResourceDefinition of Habitats (or have an administrator do it, and set --assume-crd-registered): %w", err)
		}
	}
	if err := waitServed(ctx, options.Config); err != nil {
		return err
	}
	lock, err := newLock(options, end)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	mgr, err := ctrl.NewManager(options.Config, manager.Options{
		Logger:                 options.Logger,
		HealthProbeBindAddress: options.HealthAddress,
		Metrics:                options.Metrics,
		Cache:                  cacheOptions(options.Namespaces),
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		// A replica fills its caches before it is elected.
		Controller:                          config.Controller{EnableWarmup: new(true), SkipNameValidation: new(true)},
		LeaderElection:                      options.Elect,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &options.LeaseDuration,
		RenewDeadline:                       &options.RenewDeadline,
		RetryPeriod:                         &options.RetryPeriod,
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
func newLock(options Options, restored func(error)) (resourcelock.Interface, error) {
	if !options.Elect {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	client, err := coordinationv1.NewForConfig(options.Config)
	if err != nil {
		return nil, err
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: options.LeaseNamespace, Name: Name},
		Client:     &history{LeasesGetter: client, restored: restored},
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}, nil
}

// add adds the controllers and the probes.
func add(mgr manager.Manager, recorder recorder, options Options) error {
	s := &shared{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: recorder,
		cluster: options.Cluster, filesImage: options.FilesImage, recheck: options.Recheck, now: time.Now,
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
