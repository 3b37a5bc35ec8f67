package discovery

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

const (
	// foundFor is how long a kind is taken to be served as it was found, if no
	// CustomResourceDefinition says otherwise.
	foundFor = 10 * time.Minute
	// settling is how long after a change of a CustomResourceDefinition the target
	// may still serve the former kinds, and settlingStep how often it is asked
	// meanwhile.
	settling     = 10 * time.Second
	settlingStep = time.Second
)

// Kinds finds where a target serves a kind, and remembers it: a repair waits for no
// discovery. It notifies the Applications that asked for a kind of a group when the
// definitions of that group change.
type Kinds struct {
	target Lister
	notify func(owner types.NamespacedName, after time.Duration)
	now    func() time.Time

	// reading is held while the target is asked, so that all wait for one answer.
	reading sync.Mutex

	mu sync.Mutex
	// found are the kinds that the target serves, and so no more than those.
	found map[schema.GroupVersionKind]foundKind
	// changed are the groups whose CustomResourceDefinitions changed a moment
	// ago, and changes counts such changes.
	changed map[string]time.Time
	changes int
	// asked are the groups that the Applications asked for in their last pass.
	asked map[types.NamespacedName][]string
	// served is the catalogue, nil if it has to be read, and servedAt when the target
	// was asked for it; reread is when it was dropped last.
	served           *catalogue
	servedAt, reread time.Time
}

type foundKind struct {
	mapping *meta.RESTMapping
	since   time.Time
}

// NewKinds makes Kinds that ask a target. It calls notify with the Applications that
// have to look again, at once or after a time.
func NewKinds(target Lister, notify func(types.NamespacedName, time.Duration), now func() time.Time) *Kinds {
	return &Kinds{
		target:  target,
		notify:  notify,
		now:     now,
		found:   map[schema.GroupVersionKind]foundKind{},
		changed: map[string]time.Time{},
		asked:   map[types.NamespacedName][]string{},
	}
}

// Locate implements reconcile.Kinds. For a kind that the target does not serve by its
// own answer, and for nothing else, meta.IsNoMatchError holds.
func (k *Kinds) Locate(owner types.NamespacedName, id manifest.ID) (mutate.Object, error) {
	mapping, err := k.find(owner, id.GroupVersionKind())
	if err != nil {
		return mutate.Object{}, err
	}
	return mutate.ObjectAt(id, mapping), nil
}

// Forget forgets what an Application asked for. A pass calls it at its start: what the
// Application needs, it asks for again, and one that is gone asks for nothing.
func (k *Kinds) Forget(owner types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.asked, owner)
}

// KindOf returns the kind of a resource, as "Deployment.apps", or the resource itself
// where no Application asked for it.
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

func (k *Kinds) find(owner types.NamespacedName, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	known, changes := k.recall(owner, gvk)
	if known != nil {
		return known, nil
	}
	mapping, err := k.ask(gvk)
	if err != nil && k.dropStale(gvk.Group) {
		mapping, err = k.ask(gvk)
	}
	k.remember(owner, gvk, mapping, changes)
	return mapping, err
}

// ask looks into the catalogue, and reads it if there is none.
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

// current returns the catalogue that was read last. An answer that was read while the
// definitions of the group changed may be stale: it is dropped once they have settled.
func (k *Kinds) current(group string) (known *catalogue, changes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if changed, ok := k.changed[group]; ok && k.unsettledLocked(group) == 0 && k.servedAt.Before(changed.Add(settling)) {
		k.served, k.reread = nil, k.now()
	}
	return k.served, k.changes
}

// keep keeps a catalogue, unless something has changed while it was read.
func (k *Kinds) keep(fresh *catalogue, changes int, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if changes == k.changes {
		k.served, k.servedAt = fresh, at
	}
}

// recall returns what is known of a kind, and records who asked.
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

// remember keeps what was found. While definitions of the group change, nothing is
// kept, and the Application looks again: the target may answer with the former kinds.
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

// dropStale drops the catalogue if it is time to read it anew, and reports whether
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

// unsettledLocked is for how long the target may not be sure yet of a group.
func (k *Kinds) unsettledLocked(group string) time.Duration {
	changed, ok := k.changed[group]
	if !ok {
		return 0
	}
	return max(0, settling-k.now().Sub(changed))
}

// Redefine invalidates a group whose CustomResourceDefinition came, went or changed.
// Its name is that of the resource and of the group: widgets.example.com.
func (k *Kinds) Redefine(name string) {
	_, group, _ := strings.Cut(name, ".")
	for _, owner := range k.invalidate(group) {
		k.notify(owner, 0)
	}
}

// invalidate forgets the catalogue and what was found of a group, and returns the
// Applications that asked for it.
func (k *Kinds) invalidate(group string) []types.NamespacedName {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	k.changes++
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
	return owners
}
