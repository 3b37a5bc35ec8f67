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
	// ErrNamespace is the error of an [Observation] of a target that is not watched, because it is
	// in none of Options.Namespaces.
	ErrNamespace = errors.New("the namespace is not one of those that are watched")
)

// Options configure the objects to observe, and the notification of their owners.
type Options struct {
	Client dynamic.Interface
	// Metadata is for [Observers.Resync].
	Metadata metadata.Interface
	// Selector is the label selector that all objects of any owner match.
	Selector string
	// Namespaces are the watched namespaces. Each has its own informers, so that rights in these
	// namespaces suffice. Without any, one informer for each kind watches all namespaces.
	// Cluster-scoped objects are watched in both cases.
	Namespaces []string
	// Notify is called when an owner has to act. It must not block, nor call back.
	Notify func(Owner)
	// Crowded reports that owners have not observed their objects yet, as when the process starts. The
	// first list of a kind waits for them, up to two minutes. Crowded must not call back. If nil, the
	// list waits only while requests follow each other.
	Crowded func() bool
	// Summarise returns facts about a live object beyond its observed fields. They are compared
	// with ==. If nil, there are none. One result is stored for every object, so it must be small,
	// and share nothing with the object but whole strings.
	Summarise func(live map[string]any) any
	// OwnerOf returns the owner that an object names. If nil, objects name none.
	OwnerOf func(live map[string]any) (Owner, bool)
	// Resync is the interval, give or take a tenth, in which [Observers.Resync] compares each kind
	// with a list. With 0, it compares only on request.
	Resync time.Duration
	Now    func() time.Time
	Logger logr.Logger
}

// scopeOf returns the scope of an object. Cluster-scoped objects have no namespace. Their scope is
// the cluster, with and without Options.Namespaces.
func (o *Options) scopeOf(at key) scope {
	if len(o.Namespaces) == 0 {
		return scope{resource: at.resource}
	}
	return scope{at.resource, at.namespace}
}

// watches reports whether the objects of a scope have to be watched.
func (o *Options) watches(s scope) bool {
	return s.namespace == metav1.NamespaceAll || slices.Contains(o.Namespaces, s.namespace)
}
