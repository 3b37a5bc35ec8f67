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
	// Bytes is an estimate of the memory that they take: records, projections
	// and whole objects that differ, by the sizes of Go's types, without what
	// the allocator and the store add (about as much again for small objects).
	Bytes int64
}

const (
	word        = 8
	stringBytes = 2 * word
	valueBytes  = 2 * word
	sliceBytes  = 3 * word
	recordBytes = 4*stringBytes + word + valueBytes + sliceBytes
)

// Stats returns what is kept of each kind, in the order of their names.
func (o *Observers) Stats() []Stat {
	o.registry.mu.RLock()
	defer o.registry.mu.RUnlock()
	held := map[schema.GroupVersionResource]int64{}
	for at, views := range o.registry.watched {
		for _, v := range views {
			held[at.resource] += v.last.bytes()
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
			stat.Bytes += found.bytes()
		}
		kept[s.resource] = stat
	}
	stats := slices.Collect(maps.Values(kept))
	slices.SortFunc(stats, func(a, b Stat) int { return cmp.Compare(a.Resource.String(), b.Resource.String()) })
	return stats
}

func (r *record) bytes() int64 {
	return int64(recordBytes + len(r.namespace) + len(r.name) + len(r.uid) + len(r.version))
}

func (o Observation) bytes() int64 {
	return int64(len(o.Projection) + len(o.Live))
}
