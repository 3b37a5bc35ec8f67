package plan

import (
	"bytes"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// tree is a JSON object, packed until it is read. Nothing changes a value in it.
type tree struct {
	pack   manifest.Packed
	fields map[string]any
}

func treeOf(fields map[string]any) tree { return tree{fields: fields} }

// unpack returns the object, and stores it unpacked.
func (t *tree) unpack() map[string]any {
	if t.fields == nil {
		t.fields = t.pack.Fields()
	}
	return t.fields
}

// packed returns the tree with its packed form.
func (t tree) packed() tree {
	if t.pack == nil {
		t.pack = manifest.Pack(t.fields)
	}
	return t
}

// atRest returns the tree in the form for the cache.
func (t tree) atRest() tree { return tree{pack: t.packed().pack} }

// equal reports whether two trees at rest are of equal objects.
func (t tree) equal(other tree) bool { return bytes.Equal(t.pack, other.pack) }
