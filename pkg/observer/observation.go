package observer

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json" // reads integers as such

	"github.com/krake-observer/krake-observer/internal/resync"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Observation is the last observation of a target. The zero value means that the target was never
// seen. Without a UID, the object does not exist.
type Observation struct {
	UID types.UID
	// ResourceVersion is the resourceVersion of the object, or of its deletion.
	ResourceVersion string
	// Projection are the fields of the target's Schema, with their lists' lengths.
	Projection manifest.Packed
	// Live is the whole object while it differs from the target, nil otherwise.
	Live Whole
	// Stale: the object exists, but was not seen under the target's revision.
	Stale bool
	// Seen is when the event arrived.
	Seen time.Time
	// Summary is what Options.Summarise returned for the object, for its last version if it is gone.
	Summary any
	// Err is the reason why the object is unknown, or could not be inspected. The other fields are
	// then the former ones.
	Err error
}

// Whole is an object as JSON, or nil. When all objects of a cluster differ at once, each waits for
// its repair as text, which needs less memory than a tree.
type Whole []byte

// wholeOf returns an object that was received as JSON.
func wholeOf(fields map[string]any) Whole {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("an object that was received as JSON is not valid JSON: %v", err)) // inspector.guard recovers and reports it
	}
	return text
}

// Fields decodes the object into a new tree. It returns nil if there is no object, or if it cannot
// be read.
func (w Whole) Fields() map[string]any {
	if w == nil {
		return nil
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(w, &fields); err != nil {
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

// supersedes reports whether an observation replaces a former one. The former one may be that of
// the object's deletion.
func (o Observation) supersedes(former Observation) bool {
	return resync.Newer(o.ResourceVersion, former.ResourceVersion)
}
