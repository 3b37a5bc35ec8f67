package observer

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stat is the memory of the objects of a kind, in all namespaces.
type Stat struct {
	Resource schema.GroupVersionResource
	Objects  int
	// Bytes estimates the memory of records, projections and whole objects that differ, by the
	// sizes of Go's types. It omits the overhead of allocator and store, which doubles it for small
	// objects.
	Bytes int64
}

const (
	word        = 8
	stringBytes = 2 * word
	valueBytes  = 2 * word
	sliceBytes  = 3 * word
	recordBytes = 4*stringBytes + word + valueBytes + sliceBytes
)

// Stats returns the memory of each kind, in the order of their names.
func (o *Observers) Stats() []Stat {
	o.registry.mu.RLock()
	defer o.registry.mu.RUnlock()
	held := map[schema.GroupVersionResource]int64{}
	for in, objects := range o.registry.watched {
		for _, views := range objects {
			for _, v := range views {
				held[in.resource] += int64(len(v.last.Projection) + len(v.last.Live))
			}
		}
	}
	kept := map[schema.GroupVersionResource]Stat{}
	for s, k := range o.informers.kinds {
		stat, ok := kept[s.resource]
		if !ok {
			stat = Stat{Resource: s.resource, Bytes: held[s.resource]}
		}
		for _, found := range k.current.records() {
			stat.Objects++
			stat.Bytes += int64(recordBytes + len(found.namespace) + len(found.name) + len(found.uid) + len(found.version))
		}
		kept[s.resource] = stat
	}
	return slices.SortedFunc(maps.Values(kept), func(a, b Stat) int { return cmp.Compare(a.Resource.String(), b.Resource.String()) })
}
