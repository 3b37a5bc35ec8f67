package mutate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// MaxSpecBytes bounds the text of manifest and observer schema together. The
// rest of the 1 MiB that a ConfigMap holds is for the status documents.
const MaxSpecBytes = manifest.MaxBytes

// Desired is what an Application wants, resource by resource.
type Desired struct {
	// Mangled is the mangled observer schema (step 1).
	Mangled schema.Set
	// Resources is the desired state, the last applied manifest (step 2).
	Resources []map[string]any
	// Schemas are the schemas of the resources, in the same order.
	Schemas []schema.Schema
	// Manifest are the resources as the user wrote them, in the same order.
	Manifest []map[string]any
}

// Desire computes the desired state of an Application from its spec and from
// what its agent has learned. Nothing else goes into it, so that webhook and
// agent come to the same result. With refusals the result is empty. Where the
// objects are, and whether the Application may reach them, is [Scope.Confine]'s.
func Desire(spec application.Spec, learned []map[string]any) (Desired, field.ErrorList) {
	d := read(spec)
	if len(d.refusals) > 0 {
		return Desired{}, d.refusals
	}
	return d.desire(learned)
}

// draft is a spec as it was read and checked.
type draft struct {
	// resources are those of the manifest; one that is no object is nil, and refused.
	resources []map[string]any
	mangled   schema.Set
	refusals  field.ErrorList
	warnings  []string
}

// read reads a spec, and finds everything that is wrong with it.
func read(spec application.Spec) draft {
	if refusals := checkSize(spec); len(refusals) > 0 {
		return draft{refusals: refusals}
	}
	var d draft
	resources, err := manifest.Decode([]byte(spec.Manifest))
	if err != nil {
		d.refusals = append(d.refusals, invalid("data."+application.ManifestKey, err.Error()))
	}
	custom, err := manifest.Decode([]byte(spec.ObserverSchema))
	if err != nil {
		d.refusals = append(d.refusals, invalid("data."+application.ObserverSchemaKey, err.Error()))
	}
	if len(d.refusals) > 0 {
		return d
	}
	d.resources = objectsOf(resources)
	mangled, findings := schema.Mangle(resources, custom)
	d.mangled = align(mangled)
	d.warnings = warnings(findings.Warnings())
	d.refusals = slices.Concat(refuse(findings.Errors()), checkSchemas(objectsOf(custom)), checkResources(d.resources))
	return d
}

func (d *draft) desire(learned []map[string]any) (Desired, field.ErrorList) {
	schemas, err := d.mangled.Of(d.resources)
	if err != nil {
		return Desired{}, field.ErrorList{invalid("data."+application.ManifestKey, err.Error())}
	}
	retained, err := d.mangled.Retain(d.resources, learned)
	if err != nil {
		return Desired{}, field.ErrorList{invalid("data."+application.LearnedKey, err.Error())}
	}
	return Desired{
		Mangled: d.mangled,
		// What was learned of a resource that left the manifest is appended: it is desired no more.
		Resources: retained[:len(d.resources)],
		Schemas:   schemas,
		Manifest:  d.resources,
	}, nil
}

// align tells the schemas the keys of built-in lists, so that what was learned
// of an element stays with it when the manifest is put in another order, and
// leaves out what only a server can write.
func align(mangled schema.Set) schema.Set {
	types := apitypes.BuiltIn()
	aligned := make(schema.Set, 0, len(mangled))
	for _, observed := range mangled {
		observed, _ := observed.WithoutServerOwned()
		aligned = append(aligned, observed.Align(types.Of(observed.ID())))
	}
	return aligned
}

func objectsOf(values []any) []map[string]any {
	objects := make([]map[string]any, len(values))
	for i, value := range values {
		objects[i], _ = value.(map[string]any) // another type is a finding of its own
	}
	return objects
}

func refuse(findings schema.Findings) field.ErrorList {
	var refusals field.ErrorList
	for _, finding := range findings {
		refusals = append(refusals, invalid("data."+finding.Path, finding.Message))
	}
	return refusals
}

func warnings(findings schema.Findings) []string {
	var texts []string
	for _, finding := range findings {
		texts = append(texts, "data."+finding.Error())
	}
	return texts
}
