package discovery

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

const (
	// foundFor is how long [Kinds] relies on a kind that it has found, while no
	// CustomResourceDefinition changes.
	foundFor = 10 * time.Minute
	// settling is how long the target may still serve the former kinds after a change of a
	// CustomResourceDefinition. settlingStep is how often it is asked meanwhile.
	settling     = 10 * time.Second
	settlingStep = time.Second
)

// Kinds finds where a target serves a kind, and caches it, so that a repair waits for no
// discovery. When the definitions of a group change, it notifies the Applications that
// asked for a kind of that group.
type Kinds struct {
	target Lister
	notify func(owner types.NamespacedName, after time.Duration)
	now    func() time.Time
	logger logr.Logger

	// reading is locked while the target is asked, so that all callers wait for one answer. So is
	// describing, while types are read.
	reading, describing sync.Mutex

	mu sync.Mutex
	// found are the kinds that were asked for and that the target serves.
	found map[schema.GroupVersionKind]foundKind
	// changed are the groups whose CustomResourceDefinitions changed less than settling
	// ago. changes counts such changes, and redefined those of each group.
	changed   map[string]time.Time
	changes   int
	redefined map[string]int
	// asked are the groups that each Application asked for in its last pass.
	asked map[types.NamespacedName][]string
	// served is the catalogue, nil if it has to be read. The target was asked for it at
	// servedAt, and the last one was dropped at reread.
	served           *catalogue
	servedAt, reread time.Time
	// defined are the types that definitions describe.
	defined map[schema.GroupVersion]definedTypes
}

type foundKind struct {
	mapping *meta.RESTMapping
	since   time.Time
}

// NewKinds returns the kinds of a target. They call notify with each Application that has
// to ask again, and with the time after which it has to.
func NewKinds(target Lister, notify func(types.NamespacedName, time.Duration), now func() time.Time, logger logr.Logger) *Kinds {
	return &Kinds{
		target:    target,
		notify:    notify,
		now:       now,
		logger:    logger,
		found:     map[schema.GroupVersionKind]foundKind{},
		changed:   map[string]time.Time{},
		redefined: map[string]int{},
		asked:     map[types.NamespacedName][]string{},
		defined:   map[schema.GroupVersion]definedTypes{},
	}
}

// Locate implements reconcile.Kinds. If the target answers that it does not serve the
// kind, and only then, meta.IsNoMatchError holds for the error.
func (k *Kinds) Locate(owner types.NamespacedName, id manifest.ID) (mutate.Object, error) {
	gvk := id.GroupVersionKind()
	known, changes := k.recall(owner, gvk)
	if known != nil {
		return mutate.ObjectAt(id, known), nil
	}
	mapping, err := k.ask(gvk)
	if err != nil && k.dropStale(gvk.Group) {
		mapping, err = k.ask(gvk)
	}
	k.remember(owner, gvk, mapping, changes)
	if err != nil {
		return mutate.Object{}, err
	}
	return mutate.ObjectAt(id, mapping), nil
}

// Forget implements reconcile.Kinds.
func (k *Kinds) Forget(owner types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.asked, owner)
}

// KindOf returns the kind of a resource, such as "Deployment.apps", or the resource itself
// if no Application asked for it.
func (k *Kinds) KindOf(resource schema.GroupVersionResource) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for gvk, found := range k.found {
		if found.mapping.Resource == resource {
			return gvk.GroupKind().String()
		}
	}
	return resource.GroupResource().String()
}

// ask finds a kind in the catalogue, and reads the catalogue if there is none.
func (k *Kinds) ask(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	k.reading.Lock()
	defer k.reading.Unlock()
	known, changes := k.current(gvk.Group)
	if known == nil {
		at := k.now()
		var err error
		if known, err = read(k.target); err != nil {
			return nil, err
		}
		k.keep(known, changes, at)
	}
	return known.find(gvk)
}

// current returns the catalogue that was read last, and drops it if it was read before the
// definitions of the group had settled.
func (k *Kinds) current(group string) (known *catalogue, changes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if changed, ok := k.changed[group]; ok && k.unsettledLocked(group) == 0 && k.servedAt.Before(changed.Add(settling)) {
		k.served, k.reread = nil, k.now()
	}
	return k.served, k.changes
}

// keep stores a catalogue, unless a definition has changed while it was read.
func (k *Kinds) keep(fresh *catalogue, changes int, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if changes == k.changes {
		k.served, k.servedAt = fresh, at
	}
}

// recall returns what is known of a kind, and records the Application that asked.
func (k *Kinds) recall(owner types.NamespacedName, gvk schema.GroupVersionKind) (known *meta.RESTMapping, changes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if strings.Contains(gvk.Group, ".") && !slices.Contains(k.asked[owner], gvk.Group) { // other groups have no custom resources
		k.asked[owner] = append(k.asked[owner], gvk.Group)
	}
	found, ok := k.found[gvk]
	switch {
	case ok && k.now().Sub(found.since) < foundFor:
		return found.mapping, k.changes
	case ok && k.now().Sub(k.reread) >= foundFor:
		k.served, k.reread = nil, k.now()
	}
	return nil, k.changes
}

// remember stores a kind that was found. While the definitions of its group settle, it
// stores nothing and notifies the Application: the target may still serve the former kinds.
func (k *Kinds) remember(owner types.NamespacedName, gvk schema.GroupVersionKind, mapping *meta.RESTMapping, changes int) {
	k.mu.Lock()
	left := k.unsettledLocked(gvk.Group)
	if mapping != nil && left == 0 && changes == k.changes {
		k.found[gvk] = foundKind{mapping, k.now()}
	}
	k.mu.Unlock()
	if left == 0 {
		return
	}
	if mapping == nil {
		left = settlingStep
	}
	k.notify(owner, left)
}

// dropStale drops the catalogue if it is old enough to be read again, and reports whether
// it is.
func (k *Kinds) dropStale(group string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	least := unknownFor
	if k.unsettledLocked(group) > 0 {
		least = settlingStep
	}
	if k.now().Sub(k.reread) < least {
		return false
	}
	k.served, k.reread = nil, k.now()
	return true
}

// unsettledLocked returns how long the target may still serve the former kinds of a group.
// The zero time of a group without changes is long ago.
func (k *Kinds) unsettledLocked(group string) time.Duration {
	return max(0, settling-k.now().Sub(k.changed[group]))
}

// Redefine invalidates the group of a CustomResourceDefinition that was created, changed or
// deleted. Its name has the resource and the group: widgets.example.com.
func (k *Kinds) Redefine(name string) {
	_, group, _ := strings.Cut(name, ".")
	for _, owner := range k.invalidate(group) {
		k.notify(owner, 0)
	}
}

// Redefinitions implements reconcile.Kinds.
func (k *Kinds) Redefinitions(group string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.redefined[group]
}

// invalidate drops the catalogue and the kinds of a group, and returns the Applications
// that asked for them.
func (k *Kinds) invalidate(group string) []types.NamespacedName {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	k.changes++
	k.redefined[group]++
	k.served, k.reread = nil, now
	maps.DeleteFunc(k.changed, func(_ string, at time.Time) bool { return now.Sub(at) >= settling })
	k.changed[group] = now
	maps.DeleteFunc(k.found, func(gvk schema.GroupVersionKind, _ foundKind) bool { return gvk.Group == group })
	var owners []types.NamespacedName
	for owner, groups := range k.asked {
		if slices.Contains(groups, group) {
			owners = append(owners, owner)
		}
	}
	k.redefineLocked(group, len(owners) > 0)
	return owners
}

// redefineLocked compares the types of a group again. Without an Application that asked for the group, it forgets them.
func (k *Kinds) redefineLocked(group string, isAsked bool) {
	for version, known := range k.defined {
		switch {
		case version.Group != group:
		case isAsked:
			known.until, known.failures = time.Time{}, 0
			k.defined[version] = known
		default:
			delete(k.defined, version)
		}
	}
}
