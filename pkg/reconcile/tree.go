package reconcile

import (
	"bytes"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// tree is a JSON object, packed while nobody looks at it. Nobody changes a value in it.
type tree struct {
	pack   manifest.Packed
	fields map[string]any
}

func treeOf(fields map[string]any) tree { return tree{fields: fields} }

// look gives the object.
func (t *tree) look() map[string]any {
	if t.fields == nil {
		t.fields = t.pack.Fields()
	}
	return t.fields
}

// packed gives the tree with what it is packed to.
func (t tree) packed() tree {
	if t.pack == nil {
		t.pack = manifest.Pack(t.fields)
	}
	return t
}

// atRest gives the tree as it is kept.
func (t tree) atRest() tree { return tree{pack: t.packed().pack} }

// equal tells if two trees at rest are of equal objects.
func (t tree) equal(other tree) bool { return bytes.Equal(t.pack, other.pack) }
