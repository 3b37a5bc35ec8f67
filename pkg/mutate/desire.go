package mutate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Desired is what an Application wants. Resources, Schemas and Manifest have the same order.
type Desired struct {
	// Mangled is the mangled observer schema (step 1).
	Mangled schema.Set
	// Resources is the desired state, the last applied manifest (step 2).
	Resources []map[string]any
	Schemas   []schema.Schema
	// Manifest are the resources that the user wrote, with what the hooks have added.
	Manifest []map[string]any
	// Translated is the translation of a template or an archive (step 0), nil where
	// there is a manifest.
	Translated []map[string]any
	// Secrets are those of the hooks: the last ones of the resources. The agent makes their
	// values, of which documents have only digests.
	Secrets []HookSecret
}

// Desire returns the desired state of an Application, computed from its spec and from what
// its agent has learned, and from nothing else, so that webhook and agent have the same
// result. With refusals the result is empty. [Scope.Confine] decides where the objects are
// and whether the Application may reach them.
func Desire(spec application.Spec, learned []map[string]any) (Desired, field.ErrorList) {
	d := read(spec)
	if len(d.refusals) > 0 {
		return Desired{}, Relocate(d.refusals, spec)
	}
	if refusals := d.desire(learned); len(refusals) > 0 {
		return Desired{}, refusals
	}
	return d.Desired, nil
}

// draft is a desired state that is read and checked, and not yet computed. A resource of the
// manifest that is no object is nil, and refused.
type draft struct {
	Desired

	refusals field.ErrorList
	warnings []string
}

// read reads a spec, and finds all its mistakes.
func read(spec application.Spec) draft {
	if refusals := checkSize(spec); len(refusals) > 0 {
		return draft{refusals: refusals}
	}
	var d draft
	resources, err := resourcesOf(spec)
	key, _ := spec.Source()
	if err != nil {
		d.refusals = append(d.refusals, invalid("data."+key, err.Error()))
	}
	custom, err := manifest.Decode([]byte(spec.ObserverSchema))
	if err != nil {
		d.refusals = append(d.refusals, invalid(schemasPath, err.Error()))
	}
	if len(d.refusals) > 0 {
		return d
	}
	d.Manifest = objectsOf(resources)
	if key != application.ManifestKey {
		d.Translated = d.Manifest
	}
	mangled, findings := schema.Mangle(resources, custom)
	d.Mangled = mangled
	for _, warning := range findings.Warnings() {
		d.warnings = append(d.warnings, "data."+warning.Error())
	}
	d.refusals = slices.Concat(refuse(findings.Errors()), checkSchemas(objectsOf(custom)), checkResources(d.Manifest))
	if len(d.refusals) == 0 && len(spec.Hooks.Enabled()) > 0 {
		d.hook(spec.Hooks, objectsOf(custom))
	}
	d.Mangled = align(d.Mangled)
	return d
}

// hook adds to resources and schemas what the hooks want (step 3).
func (d *draft) hook(hooks application.Hooks, custom []map[string]any) {
	injection, refusals := inject(hooks, d.Manifest, custom)
	if d.refusals = refusals; len(refusals) > 0 {
		return
	}
	mangled, findings := schema.Mangle(valuesOf(injection.resources), valuesOf(injection.custom))
	d.refusals = refuse(findings.Errors())
	d.Manifest, d.Mangled, d.Secrets = injection.resources, mangled, injection.secrets
	d.warnings = append(d.warnings, injection.warnings...)
}

// desire computes the desired state.
func (d *draft) desire(learned []map[string]any) field.ErrorList {
	var err error
	if d.Schemas, err = d.Mangled.Of(d.Manifest); err != nil {
		return field.ErrorList{invalid("data."+application.ManifestKey, err.Error())}
	}
	retained, err := d.Mangled.Retain(d.Manifest, learned)
	if err != nil {
		return field.ErrorList{invalid("data."+application.LearnedKey, err.Error())}
	}
	d.Resources = retained[:len(d.Manifest)] // what was learned of a resource that left the manifest comes behind
	return nil
}

// align returns the schemas with the keys of built-in lists, so that learned values stay with
// their element when the manifest changes its order, and without what only a server writes.
func align(mangled schema.Set) schema.Set {
	types := apitypes.BuiltIn()
	aligned := make(schema.Set, 0, len(mangled))
	for _, observed := range mangled {
		observed, _ := observed.WithoutServerOwned()
		aligned = append(aligned, observed.Align(types.Of(observed.ID())))
	}
	return aligned
}

func refuse(findings schema.Findings) field.ErrorList {
	var refusals field.ErrorList
	for _, finding := range findings {
		refusals = append(refusals, invalid("data."+finding.Path, finding.Message))
	}
	return refusals
}
