package hub

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ResyncOptions are what a [Resync] compares.
type ResyncOptions struct {
	Cluster    string
	Namespaces []string // with Applications; none: all
	Interval   time.Duration
	// Lists has versions, Cached what the watch reported, Live the present state.
	Lists        metadata.Interface
	Cached, Live client.Reader
	Store        *Store
	// Notify is called with the Applications that have to be looked at.
	Notify func(types.NamespacedName)
	Logger logr.Logger
}

// Resync compares the Applications that are known with those on the hub.
type Resync struct{ engine *hubResync }

// NewResync makes a Resync that does nothing before it is run.
func NewResync(options ResyncOptions) (*Resync, error) {
	selector, err := SelectorOf(options.Cluster)
	if err != nil {
		return nil, err
	}
	namespaces := options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &Resync{&hubResync{
		selector: selector, namespaces: namespaces, interval: options.Interval, grace: resyncGrace, hurry: make(chan struct{}, 1), confirmed: make(chan struct{}),
		lists: options.Lists, cached: options.Cached, live: options.Live, store: options.Store, notify: options.Notify, logger: options.Logger,
	}}, nil
}

// Run compares at once, and then in each interval, until the context ends.
func (r *Resync) Run(ctx context.Context) error { return r.engine.run(ctx) }

// Now has the Applications compared at once.
func (r *Resync) Now() { r.engine.now() }

// Confirmed is closed when the Applications were compared for the first time.
func (r *Resync) Confirmed() <-chan struct{} { return r.engine.confirmed }
