package habitat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Name is the user agent, field manager and event source of the controllers, and the
// name of their Lease.
const Name = "krake-habitat"

// Options of the controllers.
type Options struct {
	Config *rest.Config
	Logger logr.Logger
	// Registry takes the metrics of the controllers' work; nil: nobody reads them.
	Registry prometheus.Registerer
	Metrics  metricsserver.Options
	// HealthAddress is where to listen; "0" is nowhere.
	HealthAddress string

	// Cluster is the name by which Applications choose the agent that carries them out.
	Cluster string
	// Namespaces are those whose Habitats to carry out; none: all.
	Namespaces []string
	// AssumeRegistered leaves the CustomResourceDefinition to somebody else.
	AssumeRegistered bool
	// FilesImage is the image of the init container that copies files.
	FilesImage string
	// Recheck is how often every Habitat is looked at again.
	Recheck time.Duration

	// LeaseNamespace has the Lease by which one of several replicas acts. Without Elect
	// there is one.
	LeaseNamespace                            string
	Elect                                     bool
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Run runs the controllers until the context ends, or the right to act is lost.
func Run(ctx context.Context, options Options) error {
	if err := establish(ctx, options); err != nil {
		return err
	}
	lock, err := newLock(options)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	mgr, err := ctrl.NewManager(options.Config, manager.Options{
		Logger:                 options.Logger,
		HealthProbeBindAddress: options.HealthAddress,
		Metrics:                options.Metrics,
		Cache:                  cacheOptions(options.Namespaces),
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		// A replica that does not act yet knows what there is when it begins to.
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
	if err := add(ctx, mgr, options); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return mgr.Start(ctx)
}

// newLock makes the Lease without a recorder of Events: at each restart there would
// be one that nobody reads.
func newLock(options Options) (resourcelock.Interface, error) {
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
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}, nil
}

// add adds what reacts to Habitats, and to what belongs to them.
func add(ctx context.Context, mgr manager.Manager, options Options) error {
	s := &shared{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: recorder{mgr.GetEventRecorder(Name)},
		cluster: options.Cluster, filesImage: options.FilesImage, recheck: options.Recheck, now: time.Now,
	}
	if err := s.index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return errors.Join(
		s.addVersions(mgr),
		(&rings{s}).add(mgr),
		newPeers(s).add(mgr),
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
