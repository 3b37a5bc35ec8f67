package observer

import (
	"cmp"
	"slices"
	"unique"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// byOwner is the index of an informer's objects by whom they say they belong to.
const byOwner = "owner"

func indexByOwner(object any) ([]string, error) {
	found, ok := object.(*record)
	if !ok || found.owner == (unique.Handle[Owner]{}) {
		return nil, nil
	}
	return []string{found.owner.Value().String()}, nil
}

// Stray is an object that says it belongs to an owner who does not want it.
type Stray struct {
	manifest.ID

	// Summary is what Options.Summarise gave of it.
	Summary any
}

// Strays gives the objects that say they belong to the owner and that none of
// its targets names, of the kinds that are watched for anybody. What an object
// says is no proof.
func (o *Observers) Strays(name Owner) []Stray {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var strays []Stray
	for _, k := range o.kinds {
		for _, found := range k.ownedBy(name) {
			if !o.claimedLocked(name, found.key(k.resource)) {
				id := k.id
				id.Namespace, id.Name = found.namespace, found.name
				strays = append(strays, Stray{id, found.summary})
			}
		}
	}
	slices.SortFunc(strays, func(a, b Stray) int { return cmp.Compare(a.String(), b.String()) })
	return strays
}

func (k *kind) ownedBy(name Owner) []*record {
	if k.current == nil {
		return nil
	}
	objects, err := k.current.GetIndexer().ByIndex(byOwner, name.String())
	if err != nil {
		return nil // only of an informer without this index
	}
	return recordsOf(objects)
}

func (o *Observers) claimedLocked(name Owner, at key) bool {
	own := o.owners[name]
	return own != nil && own.views[at] != nil
}

// strayLocked notifies an owner of a stray that it could not know before.
func (o *Observers) strayLocked(k *kind, before, seen *record) {
	if seen.owner == (unique.Handle[Owner]{}) || before != nil && before.owner == seen.owner && before.uid == seen.uid {
		return
	}
	name := seen.owner.Value()
	own := o.owners[name]
	switch {
	case own == nil || own.views[seen.key(k.resource)] != nil:
	case own.waiting:
		own.stray = true
	default:
		o.Notify(name)
	}
}
