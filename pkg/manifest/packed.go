package manifest

import (
	"fmt"

	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// Packed is a JSON object in one piece, nil for no object. A tree of maps takes ten times the memory,
// and the garbage collector's time, and most objects that are stored are never read again. Equal
// objects are packed alike.
type Packed []byte

// Pack packs an object that was received as JSON.
func Pack(fields map[string]any) Packed {
	if fields == nil {
		return nil
	}
	packed, err := cbor.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("a value that was received as JSON is not valid JSON: %v", err)) // of one object: it is recovered from, and told
	}
	return packed
}

// Fields returns the object as a new tree.
func (p Packed) Fields() map[string]any {
	if p == nil {
		return nil
	}
	var fields map[string]any
	if err := cbor.Unmarshal(p, &fields); err != nil {
		panic(fmt.Sprintf("a packed object is damaged: %v", err))
	}
	return fields
}
