package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// shapes stores equal parts of the schemas of all plans once.
var shapes schema.Pool

// Object is the plan of one object on the target. A copy shares no state that a method changes.
type Object struct {
	manifest.Ref

	// Mangled is the published observer schema. Schema is refined by the type, and by the forms in
	// which the API server stores the values. Marked also observes the marks.
	Mangled, Schema, Marked schema.Schema
	// Revision changes with any field above, and with the desired state.
	Revision string
	// Forms are the forms in which the API server has stored desired values.
	Forms []schema.Form
	// HasForgotten reports that a learned value was forgotten, because the API server refuses or
	// drops it.
	HasForgotten bool
	// Types describe a kind that is not built in. If they are nil, its lists have only stated keys.
	Types *apitypes.Types
	// Unserved is the reason why the agent does not look at the object, nil if it does. The target has no
	// place for it, or its account may not get it.
	Unserved error

	// manifestNamespace is the namespace in the manifest, empty if it has none.
	manifestNamespace string
	// desired is the manifest with learned values. marked is the same with the marks and the
	// namespace.
	desired, marked, manifest tree
	// values are the desired values of a Secret, from another one. Only marked and Marked have them, and nothing publishes those.
	values map[string]any
	// owner is the Application whose marks the object has; without ownerUID it has none.
	owner    types.NamespacedName
	ownerUID types.UID
}

// Desired is the desired state without the marks.
func (o *Object) Desired() map[string]any { return o.desired.unpack() }

// MarkedDesired is the desired state with the marks, in the namespace where the object is.
func (o *Object) MarkedDesired() map[string]any { return o.marked.unpack() }

// Packed is MarkedDesired, packed.
func (o *Object) Packed() manifest.Packed { return o.marked.pack }

// Manifest is the user's resource.
func (o *Object) Manifest() map[string]any { return o.manifest.unpack() }

// DigestOf returns the digest of a manifest.
func DigestOf(manifest map[string]any) (string, error) { return revise(manifest) }

// Replace replaces the desired state without a new revision, because the plan omits the values of a
// hook's Secret.
func (o *Object) Replace(desired map[string]any) { o.desired = treeOf(desired) }

// Fill sets the values of a Secret, as its data has them. Keys that others add are not observed.
func (o *Object) Fill(values map[string]any) error {
	o.values = values
	return o.pin(o.Desired())
}

// pin sets the desired state, and derives all else from it.
func (o *Object) pin(desired map[string]any) error {
	o.desired = treeOf(desired)
	o.Schema = o.Types.Refine(o.Mangled, desired)
	o.Forms = o.Schema.Keep(desired, o.Forms)
	o.Schema = shapes.Share(o.Schema.Accept(o.Forms))
	marked, observed := o.Marks().On(Placed(desired, o.Namespace)), observeMarks(o.Schema, o.Marks())
	if o.values != nil {
		marked = maps.Clone(marked)
		marked["data"] = o.values
		for key := range o.values {
			observed = observed.Observe("data", key)
		}
	}
	o.marked, o.Marked = treeOf(marked).packed(), shapes.Share(observed)
	var err error
	// Marked follows from the others.
	if o.Revision, err = revise(o.Schema.Document(), o.marked.pack, o.Forms); err != nil {
		return fmt.Errorf("digest %s: %w", o.ID, err)
	}
	return nil
}

// Marks returns the marks of the Application, none for an object without an owner.
func (o *Object) Marks() manifest.Marks {
	if o.ownerUID == "" {
		return manifest.Marks{}
	}
	return application.Marks(o.owner, o.ownerUID, o.ID)
}

// MarksOnly returns a schema that observes only the marks.
func (o *Object) MarksOnly() schema.Schema {
	bare, err := schema.Default(map[string]any{
		"apiVersion": o.APIVersion, "kind": o.Kind, "metadata": map[string]any{"name": o.Name},
	})
	if err != nil { // impossible: a planned object has an identity
		return schema.Schema{}
	}
	return observeMarks(bare, o.Marks())
}

// ObserveMarks returns the published schema that also observes the marks.
func (o *Object) ObserveMarks() schema.Schema { return observeMarks(o.Mangled, o.Marks()) }

func revise(parts ...any) (string, error) {
	hash := sha256.New()
	if err := json.NewEncoder(hash).Encode(parts); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

// draft returns the object before its place on the target is known.
func (o *Object) draft() Object {
	draft := Object{Ref: manifest.Ref{ID: o.ID}, Mangled: o.Mangled, Types: o.Types, desired: o.desired, manifest: o.manifest, manifestNamespace: o.manifestNamespace}
	draft.ID.Namespace = o.manifestNamespace
	return draft
}

// atRest returns the object with its trees packed.
func (o *Object) atRest() Object {
	resting := *o
	resting.desired, resting.marked, resting.manifest = o.desired.atRest(), o.marked.atRest(), o.manifest.atRest()
	if resting.manifest.equal(resting.desired) { // nothing was learned, so one tree is enough
		resting.manifest = resting.desired
	}
	return resting
}

// Placed returns an object in its namespace on the target, which the agent may have mapped. An
// object without a namespace stays unchanged.
func Placed(object map[string]any, namespace string) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	if namespace == "" || metadata["namespace"] == nil || metadata["namespace"] == namespace {
		return object
	}
	return inNamespace(object, namespace)
}

// AsWritten returns an object of the target with the namespace of the manifest, as in the
// documents.
func (o *Object) AsWritten(object map[string]any) map[string]any {
	described, _ := o.Manifest()["metadata"].(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	if described["namespace"] == nil || metadata["namespace"] == nil {
		return object
	}
	return inNamespace(object, described["namespace"])
}

func inNamespace(object map[string]any, namespace any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["namespace"] = namespace
	object = maps.Clone(object)
	object["metadata"] = metadata
	return object
}

// Body returns the whole desired state, for the creation of the object.
func (o *Object) Body() map[string]any {
	body := inNamespace(o.MarkedDesired(), o.Namespace)
	if o.Namespace == "" { // cluster-scoped, whatever the manifest says
		unstructured.RemoveNestedField(body, "metadata", "namespace")
	}
	return body
}

// Is reports whether a recorded object is this one. If the target does not serve its kind, it is
// unknown whether the kind has namespaces. A namespace that the manifest does not have then matches
// any.
func (o *Object) Is(held manifest.ID) bool {
	if o.Unserved != nil && o.Namespace == "" {
		held.Namespace = ""
	}
	return IsSame(o.ID, held)
}
