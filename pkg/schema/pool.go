package schema

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
)

// mostPooled bounds a Pool. A full Pool is emptied.
const mostPooled = 100_000

// Pool stores equal parts of schemas once: most of a thousand Deployments observe the same fields.
// The zero value is empty. A Pool is safe for concurrent use.
type Pool struct {
	mu    sync.Mutex
	nodes map[string]pooled
	// last is the number of the last node.
	last uint64
}

// pooled is a node, with a unique number in the Pool.
type pooled struct {
	node   node
	number uint64
}

// Share returns an equal schema that shares the parts that the Pool already has. Accepted forms of
// values ([Schema.Accept]) and the identity are not shared.
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

// share returns a shared node and its number. The number is 0 if the node is not shared.
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
	key, whole := fmt.Appendf(nil, "object %t %t %t", n.isDefault, n.closed, n.isKept), len(n.forms) == 0
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
	key := fmt.Appendf(nil, "list %d %d %d %#v %#v %d %t %t", n.min, n.max, n.given, n.keys, n.stated, n.alignment, n.isDefault, n.isKept)
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

// one returns the Pool's node for a key. The first node of a key becomes that node.
func (p *Pool) one(n node, key []byte) (node, uint64) {
	known, ok := p.nodes[string(key)]
	if !ok {
		p.last++
		known = pooled{n, p.last}
		p.nodes[string(key)] = known
	}
	return known.node, known.number
}
