package observer

import (
	"fmt"

	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// Projection are the observed fields of an object as JSON; nil: there are none. There is
// one for each object, looked at when its owner acts, which for most objects is never: as
// a tree of maps it takes ten times the memory, and the garbage collector's time.
type Projection []byte

// PackProjection packs what [schema.Schema.Project] gives.
func PackProjection(fields map[string]any) Projection {
	if fields == nil {
		return nil
	}
	packed, err := cbor.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("a value that came as JSON is none: %v", err)) // of one object: it is recovered from, and told
	}
	return packed
}

// Fields gives the fields, as a tree of the caller's own.
func (p Projection) Fields() map[string]any {
	if p == nil {
		return nil
	}
	var fields map[string]any
	if err := cbor.Unmarshal(p, &fields); err != nil {
		panic(fmt.Sprintf("what was packed is damaged: %v", err))
	}
	return fields
}
