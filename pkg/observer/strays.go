package observer

import (
	"cmp"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Stray is an object that names an owner without being one of its targets.
type Stray struct {
	manifest.ID

	// Summary is what Options.Summarise returned for it.
	Summary any
}

// Strays returns the objects of watched kinds that name the owner without being one of its targets.
// Any object can name any owner, so this proves nothing.
func (o *Observers) Strays(name Owner) []Stray {
	o.registry.mu.RLock()
	defer o.registry.mu.RUnlock()
	var claimed map[key]*view
	if own := o.registry.owners[name]; own != nil {
		claimed = own.views
	}
	var strays []Stray
	for _, k := range o.informers.kinds {
		for _, found := range k.current.ownedBy(name) {
			if claimed[found.key(k.resource)] == nil {
				id := k.id
				id.Namespace, id.Name = found.namespace, found.name
				strays = append(strays, Stray{id, found.summary})
			}
		}
	}
	slices.SortFunc(strays, func(a, b Stray) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return strays
}
