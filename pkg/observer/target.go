package observer

import (
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Owner names who wants objects observed.
type Owner = types.NamespacedName

// Target is an object that an owner wants observed.
type Target struct {
	manifest.Ref

	// Schema are the fields that the owner wants to read.
	Schema schema.Schema
	// Marked are the fields that must be as Desired has them: those of Schema and
	// the owner's marks.
	Marked  schema.Schema
	Desired manifest.Packed
	// Revision differs between two targets for one object if anything above
	// does. What was seen under another revision is read again, not compared.
	Revision string
}

// compare reports whether an object differs from the target, and stores its projection.
func (t Target) compare(live map[string]any, observation *Observation) (differs bool) {
	desired := t.Desired.Fields()
	observation.Projection = manifest.Pack(t.Schema.Project(desired, live))
	return len(t.Marked.Compare(desired, live)) > 0
}

// key is an object of a kind.
type key struct {
	resource        gvr.GroupVersionResource
	namespace, name string
}

func keyOf(target Target) key {
	return key{resource: target.Resource, namespace: target.Namespace, name: target.Name}
}

func (k key) namespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: k.namespace, Name: k.name}
}
