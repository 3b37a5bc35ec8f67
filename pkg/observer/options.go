package observer

import (
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

var (
	// ErrNotSynced is the error of an [Observation] while the objects of its kind are not all known
	// yet. The owner is notified when they are.
	ErrNotSynced = errors.New("not synced yet")
	// ErrNamespace is the error of an [Observation] of a target that is in none of
	// Options.Namespaces: it is not watched.
	ErrNamespace = errors.New("the namespace is not one of those that are watched")
)

// Options say what to observe and whom to notify.
type Options struct {
	Client dynamic.Interface
	// Streams opens watches whose objects are decoded in part; nil: Client opens them, and
	// decodes all.
	Streams Streams
	// Metadata is for [Observers.Resync].
	Metadata metadata.Interface
	// Selector is the label selector of all objects that any owner has.
	Selector string
	// Namespaces are those whose objects are watched, each by informers of its own,
	// so that rights in them suffice; none: all, by one informer for each kind.
	// Objects of the cluster are watched either way.
	Namespaces []string
	// Notify is called when an owner has to act. It must not block, nor call back.
	Notify func(Owner)
	// Summarise returns what is to be known of a live object beyond its fields; values are
	// compared with ==. nil: nothing. One is kept for every object, so it must be small and
	// share nothing with the object but whole strings. It cannot read managedFields.
	Summarise func(live map[string]any) any
	// Summarised are the fields that Summarise and OwnerOf read of an object, beside
	// metadata, apiVersion and kind; nil: all. Others need not be decoded.
	Summarised []string
	// OwnerOf returns the owner that an object names. nil: none.
	OwnerOf func(live map[string]any) (Owner, bool)
	// Resync is how often, give or take a tenth, [Observers.Resync] compares each
	// kind with a list; 0: only when asked.
	Resync time.Duration
	Now    func() time.Time
	Logger logr.Logger
}

// scopeOf returns the scope of an object. Cluster-scoped objects have no namespace, so that their
// scope is the cluster, with and without Options.Namespaces.
func (o *Options) scopeOf(at key) scope {
	if len(o.Namespaces) == 0 {
		return scope{resource: at.resource}
	}
	return scope{at.resource, at.namespace}
}

// watches reports whether the objects of a scope are to be watched.
func (o *Options) watches(s scope) bool {
	return s.namespace == metav1.NamespaceAll || slices.Contains(o.Namespaces, s.namespace)
}
