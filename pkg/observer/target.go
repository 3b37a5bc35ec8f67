package observer

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Owner is whoever wants objects observed.
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
	// Summary is what Options.Summarise gave for the object.
	Summary any
	// Err tells why the object is not known, or could not be looked at. What
	// stands above is what was known before.
	Err error

	// fingerprint is that of the observed fields, 0 if they were read otherwise.
	fingerprint fingerprint
}

// Whole is an object as JSON, nil: there is none. When all objects of a cluster drift at
// once, each waits for its turn in the room that its text takes, and not as a tree.
type Whole []byte

// wholeOf gives an object that came as JSON.
func wholeOf(fields map[string]any) Whole {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("an object that came as JSON is none: %v", err)) // it is recovered from, and told
	}
	return text
}

// Fields gives the object, as a tree of the caller's own; nil if there is none, or it holds
// what only an API server can read, as a number beyond all of Go's.
func (w Whole) Fields() map[string]any {
	if w == nil {
		return nil
	}
	known := wordsOfWhole.Get().(*words)
	defer wordsOfWhole.Put(known)
	fields, err := known.all(w)
	if err != nil {
		return nil
	}
	return fields
}

// wordsOfWhole are for objects that differ, of whatever watch.
var wordsOfWhole = sync.Pool{New: func() any { return newWords() }}

// Exists tells if the object does.
func (o Observation) Exists() bool { return o.UID != "" }

// Differs tells if the owner has to act.
func (o Observation) Differs() bool {
	return !o.Exists() || o.Stale || o.Live != nil || o.Err != nil
}

// observe looks at an object on behalf of a target, and tells if it differs.
func (t Target) observe(live map[string]any, observation *Observation) (differs bool) {
	desired := t.Desired.Fields()
	observation.Projection = manifest.Pack(t.Schema.Project(desired, live))
	return len(t.Marked.Compare(desired, live)) > 0
}

// supersedes tells if an observation is to replace a former one, which may be
// that the object was deleted.
func (o Observation) supersedes(former Observation) bool {
	return newer(o.ResourceVersion, former.ResourceVersion)
}

// newer tells if a version comes after another. All of a resource's versions
// count on: of another UID, the newer version is that of the newer object.
// Versions that cannot be ordered are taken as they come.
func newer(version, former string) bool {
	order, err := resourceversion.CompareResourceVersion(version, former)
	return err != nil || order > 0
}
