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
	// Manifest are the resources as the user wrote them, with what the hooks have
	// added, in the same order.
	Manifest []map[string]any
	// Translated is the translation of a template or an archive (step 0), nil where
	// there is a manifest.
	Translated []map[string]any
	// Secrets are those of the hooks: the last ones of the resources. What they hold
	// is for the agent to make; in the documents are digests.
	Secrets []HookSecret
}

// Desire computes the desired state of an Application from its spec and from
// what its agent has learned. Nothing else goes into it, so that webhook and
// agent come to the same result. With refusals the result is empty. Where the
// objects are, and whether the Application may reach them, is [Scope.Confine]'s.
func Desire(spec application.Spec, learned []map[string]any) (Desired, field.ErrorList) {
	d := read(spec)
	if len(d.refusals) > 0 {
		return Desired{}, Relocate(d.refusals, spec)
	}
	return d.desire(learned)
}

// draft is a spec as it was read and checked.
type draft struct {
	// resources are those of the manifest; one that is no object is nil, and refused.
	// Those of hooks are the last ones.
	resources []map[string]any
	// translated are those that a template or an archive was translated to.
	translated []map[string]any
	secrets    []HookSecret
	mangled    schema.Set
	refusals   field.ErrorList
	warnings   []string
}

// read reads a spec, and finds everything that is wrong with it.
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
		d.refusals = append(d.refusals, invalid("data."+application.ObserverSchemaKey, err.Error()))
	}
	if len(d.refusals) > 0 {
		return d
	}
	d.resources = objectsOf(resources)
	if key != application.ManifestKey {
		d.translated = d.resources
	}
	mangled, findings := schema.Mangle(resources, custom)
	d.mangled = mangled
	d.warnings = warnings(findings.Warnings())
	d.refusals = slices.Concat(refuse(findings.Errors()), checkSchemas(objectsOf(custom)), checkResources(d.resources))
	if len(d.refusals) == 0 {
		d.hook(spec.Hooks, objectsOf(custom))
	}
	d.mangled = align(d.mangled)
	return d
}

// hook adds to resources and schemas what the hooks want (step 3).
func (d *draft) hook(hooks application.Hooks, custom []map[string]any) {
	if len(hooks.Enabled()) == 0 {
		return
	}
	injection, refusals := inject(hooks, d.resources, custom)
	if d.refusals = refusals; len(refusals) > 0 {
		return
	}
	mangled, findings := schema.Mangle(valuesOf(injection.resources), valuesOf(injection.custom))
	d.refusals = refuse(findings.Errors())
	d.resources, d.mangled, d.secrets = injection.resources, mangled, injection.secrets
	d.warnings = append(d.warnings, injection.warnings...)
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
		Resources:  retained[:len(d.resources)],
		Schemas:    schemas,
		Manifest:   d.resources,
		Translated: d.translated,
		Secrets:    d.secrets,
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

func valuesOf(objects []map[string]any) []any {
	values := make([]any, 0, len(objects))
	for _, object := range objects {
		values = append(values, object)
	}
	return values
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
