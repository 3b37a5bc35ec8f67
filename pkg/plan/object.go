package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// shapes has the schemas of all plans share equal parts.
var shapes schema.Pool

// Object is what an Application wants of one object on the target. A copy shares no state that a method
// changes.
type Object struct {
	manifest.Ref

	// Mangled is the published observer schema. Schema is refined by what is known of the type, and of
	// the forms in which the API server writes the values. Marked observes the marks as well.
	Mangled, Schema, Marked schema.Schema
	// Revision changes with any field above, and with the desired state.
	Revision string
	// Forms are those in which the API server has written desired values.
	Forms []schema.Form
	// HasForgotten reports that a learned value was given up, because the API server refuses or drops it.
	HasForgotten bool
	// Unserved is why the target has no place for the object, nil if it has one.
	Unserved error

	// manifestNamespace is the namespace in the manifest, empty if it has none.
	manifestNamespace string
	// desired is the manifest with learned values, marked the same with the marks and its namespace.
	desired, marked, manifest tree
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

// Manifest is what the user wrote.
func (o *Object) Manifest() map[string]any { return o.manifest.unpack() }

// Replace replaces the desired state without a new revision: the values of a hook's Secret are not in
// the plan.
func (o *Object) Replace(desired map[string]any) { o.desired = treeOf(desired) }

// pin sets the desired state, and derives all else from it.
func (o *Object) pin(desired map[string]any) error {
	o.desired = treeOf(desired)
	o.Schema = apitypes.BuiltIn().Refine(o.Mangled, desired)
	o.Forms = o.Schema.Keep(desired, o.Forms)
	o.Schema = shapes.Share(o.Schema.Accept(o.Forms))
	o.marked = treeOf(o.Marks().On(o.placed(desired))).packed()
	o.Marked = shapes.Share(observeMarks(o.Schema, o.Marks()))
	var err error
	// Marked follows from the others.
	if o.Revision, err = revise(o.Schema.Document(), o.marked.pack, o.Forms); err != nil {
		return fmt.Errorf("digest %s: %w", o.ID, err)
	}
	return nil
}

// Marks are those of the Application, none for an object without an owner.
func (o *Object) Marks() manifest.Marks {
	if o.ownerUID == "" {
		return manifest.Marks{}
	}
	return application.Marks(o.owner, o.ownerUID, o.ID)
}

// MarksOnly is a schema that observes only the marks.
func (o *Object) MarksOnly() schema.Schema {
	bare, err := schema.Default(map[string]any{
		"apiVersion": o.APIVersion, "kind": o.Kind, "metadata": map[string]any{"name": o.Name},
	})
	if err != nil { // it has an identity: it was planned
		return schema.Schema{}
	}
	return observeMarks(bare, o.Marks())
}

// ObserveMarks returns the published schema with the marks observed as well.
func (o *Object) ObserveMarks() schema.Schema { return observeMarks(o.Mangled, o.Marks()) }

func revise(parts ...any) (string, error) {
	hash := sha256.New()
	if err := json.NewEncoder(hash).Encode(parts); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

// draft returns the object as it was before the target was asked for its place.
func (o *Object) draft() Object {
	draft := Object{Ref: manifest.Ref{ID: o.ID}, Mangled: o.Mangled, desired: o.desired, manifest: o.manifest, manifestNamespace: o.manifestNamespace}
	draft.ID.Namespace = o.manifestNamespace
	return draft
}

// atRest returns the object with its trees packed.
func (o *Object) atRest() Object {
	resting := *o
	resting.desired, resting.marked, resting.manifest = o.desired.atRest(), o.marked.atRest(), o.manifest.atRest()
	if resting.manifest.equal(resting.desired) { // nothing was learned: one of them is enough
		resting.manifest = resting.desired
	}
	return resting
}

// placed returns an object that has a namespace with the one where it is, which the agent may have mapped.
func (o *Object) placed(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	if o.Namespace == "" || metadata["namespace"] == nil || metadata["namespace"] == o.Namespace {
		return object
	}
	return inNamespace(object, o.Namespace)
}

// AsWritten returns an object of the target with the namespace of the manifest, as the documents have it.
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

// Body is the whole desired state, which the object is created from.
func (o *Object) Body() map[string]any {
	body := inNamespace(o.MarkedDesired(), o.Namespace)
	if o.Namespace == "" { // cluster-scoped, whatever the manifest says
		unstructured.RemoveNestedField(body, "metadata", "namespace")
	}
	return body
}

// Is reports whether a held object is this one. If the target does not serve its kind, nothing says
// whether the kind has namespaces, so that a namespace that the manifest does not have matches any.
func (o *Object) Is(held manifest.ID) bool {
	if o.Unserved != nil && o.Namespace == "" {
		held.Namespace = ""
	}
	return IsSame(o.ID, held)
}
