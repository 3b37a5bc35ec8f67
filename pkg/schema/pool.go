package schema

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
)

// mostPooled bounds a Pool: one that is full begins anew.
const mostPooled = 100_000

// Pool has equal parts of schemas kept once: of a thousand Deployments most observe the
// same fields. The zero value is an empty one; many may use it at once.
type Pool struct {
	mu    sync.Mutex
	nodes map[string]pooled
	// last is the number of the node that was added last.
	last uint64
}

// pooled is a node, with a number that no other one of the Pool has.
type pooled struct {
	node   node
	number uint64
}

// Share gives an equal schema, of which the parts are shared that the Pool has seen
// before. What says how single values are written ([Schema.Accept]), or whose the schema
// is, is not shared.
func (p *Pool) Share(s Schema) Schema {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.nodes) > mostPooled {
		p.nodes = nil
	}
	if p.nodes == nil {
		p.nodes = map[string]pooled{}
	}
	shared, _ := p.share(s.root)
	if root, ok := shared.(object); ok {
		s.root = root
	}
	return s
}

// share gives the number of what it gives as well, 0 if that is nobody else's.
func (p *Pool) share(n node) (node, uint64) {
	switch n := n.(type) {
	case leaf:
		if len(n.forms) == 0 {
			return p.one(n, fmt.Appendf(nil, "leaf %t %t", n.namespace, n.byValue))
		}
	case object:
		return p.shareObject(n)
	case list:
		return p.shareList(n)
	}
	return n, 0
}

func (p *Pool) shareObject(n object) (node, uint64) {
	key, whole := []byte("object"), true
	n.fields = slices.Clone(n.fields)
	for i, f := range n.fields {
		inner, number := p.share(f.node)
		n.fields[i].node = inner
		key = fmt.Appendf(key, " %q", f.name)
		key, whole = binary.AppendUvarint(key, number), whole && number != 0
	}
	if whole {
		return p.one(n, key)
	}
	return n, 0
}

func (p *Pool) shareList(n list) (node, uint64) {
	key := fmt.Appendf(nil, "list %d %d %d %#v %#v", n.min, n.max, n.given, n.keys, n.stated)
	whole := len(n.forms) == 0
	n.items = slices.Clone(n.items)
	for i, item := range n.items {
		inner, number := p.share(item)
		n.items[i] = inner
		key, whole = binary.AppendUvarint(key, number), whole && number != 0
	}
	if whole {
		return p.one(n, key)
	}
	return n, 0
}

// one gives the node that the Pool has for a key: this one, if there was none.
func (p *Pool) one(n node, key []byte) (node, uint64) {
	known, ok := p.nodes[string(key)]
	if !ok {
		p.last++
		known = pooled{n, p.last}
		p.nodes[string(key)] = known
	}
	return known.node, known.number
}
