package observer

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/resync"
	"github.com/krake-observer/krake-observer/pkg/watchjson"
)

// Observation is what was last seen of a target. The zero value: it was never
// seen. Without a UID it does not exist.
type Observation struct {
	UID types.UID
	// ResourceVersion is that of the object, or that of its deletion.
	ResourceVersion string
	// Projection are the fields of the target's Schema, with their lists' lengths.
	Projection manifest.Packed
	// Live is the whole object while it differs from the target, nil otherwise.
	Live Whole
	// Stale: the object exists, but was not seen under the target's revision.
	Stale bool
	// Seen is when the event arrived.
	Seen time.Time
	// Summary is what Options.Summarise returned for the object.
	Summary any
	// Err is why the object is not known, or could not be inspected. The other fields are
	// what was known before.
	Err error

	// fingerprint is that of the text of the observed fields, 0 without a text.
	fingerprint fingerprint
}

// fingerprint digests the texts of the observed fields of an object. An equal fingerprint of the
// same object for the same target means that nothing observed has changed. 0: there is none.
type fingerprint uint64

// Whole is an object as JSON; nil: there is none. When all objects of a cluster differ at the same
// time, each waits for its repair in the memory of its text, which is less than that of a tree.
type Whole []byte

// wholeOf returns an object that came as JSON.
func wholeOf(fields map[string]any) Whole {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("an object that came as JSON is none: %v", err)) // inspector.guard recovers and reports it
	}
	return text
}

// Fields decodes the object into a tree of the caller's own. It returns nil if there is none, or if
// the object holds what only an API server can read, such as a number beyond those of Go.
func (w Whole) Fields() map[string]any {
	if w == nil {
		return nil
	}
	fields, err := watchjson.Object(w)
	if err != nil {
		return nil
	}
	return fields
}

// Exists reports whether the object exists.
func (o Observation) Exists() bool { return o.UID != "" }

// Differs reports whether the owner has to act.
func (o Observation) Differs() bool {
	return !o.Exists() || o.Stale || o.Live != nil || o.Err != nil
}

// supersedes reports whether an observation replaces a former one, which may be that of the
// deletion of the object.
func (o Observation) supersedes(former Observation) bool {
	return resync.Newer(o.ResourceVersion, former.ResourceVersion)
}
