package mutate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Desired is the desired state of an Application. Resources, Schemas and Manifest have the same
// order.
type Desired struct {
	// Mangled is the mangled observer schema (step 1).
	Mangled schema.Set
	// Resources is the desired state, the last applied manifest (step 2).
	Resources []map[string]any
	Schemas   []schema.Schema
	// Manifest are the user's resources, with the additions of the hooks.
	Manifest []map[string]any
	// Translated is the translation of a template or an archive (step 0). It is nil if there is a
	// manifest.
	Translated []map[string]any
	// Secrets are the Secrets of the hooks, the last ones of the resources. The agent makes their
	// values. Documents have only digests of them.
	Secrets []HookSecret
}

// Desire returns the desired state of an Application. It computes it only from the spec and the
// learned values, so that webhook and agent have the same result. If there are refusals, the result
// is empty. [Scope.Confine] decides where the objects are, and whether the Application may reach
// them.
func Desire(spec application.Spec, learned []map[string]any) (Desired, field.ErrorList) {
	never := func() error { return nil } // no request waits for it
	d := read(spec, never)
	if len(d.refusals) > 0 {
		return Desired{}, Relocate(d.refusals, spec)
	}
	if refusals := d.desire(learned, never); len(refusals) > 0 {
		return Desired{}, refusals
	}
	return d.Desired, nil
}

// draft is a desired state that is read and checked, but not computed yet. A resource of the
// manifest that is not an object is nil, and refused.
type draft struct {
	Desired

	refusals field.ErrorList
	warnings []string
}

// stops refuses the draft if the request has ended for which it is computed: ended returns why.
func (d *draft) stops(ended func() error) bool {
	err := ended()
	if err != nil {
		d.refusals = field.ErrorList{field.InternalError(field.NewPath("data"), err)}
	}
	return err != nil
}

// read reads a spec, and reports all its mistakes.
func read(spec application.Spec, ended func() error) draft {
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
	if len(d.refusals) > 0 || d.stops(ended) {
		return d
	}
	if values := manifest.CountValues(resources); values > manifest.MaxValues { // of a translation: its parts may repeat
		d.refusals = field.ErrorList{invalid("data."+key, fmt.Sprintf(
			"the resources have %d values, which are texts, numbers, objects and lists; the maximum is %d: split the Application", values, manifest.MaxValues))}
		return d
	}
	d.Manifest = objectsOf(resources)
	if key != application.ManifestKey {
		d.Translated = d.Manifest
	}
	mangled, findings := schema.MangleTyped(resources, custom, apitypes.BuiltIn().Of)
	d.Mangled = mangled
	if d.stops(ended) {
		return d
	}
	for _, warning := range findings.Warnings() {
		d.warnings = append(d.warnings, "data."+warning.Error())
	}
	d.refusals = slices.Concat(refuse(findings.Errors()), checkSchemas(objectsOf(custom)), checkResources(d.Manifest))
	if len(d.refusals) == 0 && len(spec.Hooks.Enabled()) > 0 {
		d.hook(spec.Hooks, objectsOf(custom))
	}
	if d.stops(ended) {
		return d
	}
	d.Mangled = align(d.Mangled)
	d.leaveToOthers(len(custom))
	d.hideSecrets(len(custom))
	return d
}

// hook adds the additions of the hooks to resources and schemas (step 3).
func (d *draft) hook(hooks application.Hooks, custom []map[string]any) {
	injection, refusals := inject(hooks, d.Manifest, custom)
	if d.refusals = refusals; len(refusals) > 0 {
		return
	}
	mangled, findings := schema.MangleTyped(valuesOf(injection.resources), valuesOf(injection.custom), apitypes.BuiltIn().Of)
	d.refusals = refuse(findings.Errors())
	d.Manifest, d.Mangled, d.Secrets = injection.resources, mangled, injection.secrets
	d.warnings = append(d.warnings, injection.warnings...)
}

func (d *draft) desire(learned []map[string]any, ended func() error) field.ErrorList {
	if d.stops(ended) {
		return d.refusals
	}
	var err error
	if d.Schemas, err = d.Mangled.Of(d.Manifest); err != nil {
		return field.ErrorList{invalid("data."+application.ManifestKey, err.Error())}
	}
	retained, err := d.Mangled.Retain(d.Manifest, learned)
	if err != nil {
		return field.ErrorList{invalid("data."+application.LearnedKey, err.Error())}
	}
	d.Resources = retained[:len(d.Manifest)] // learned resources that left the manifest follow
	return nil
}

// align returns the schemas with the keys of built-in lists, and without fields that only a server
// writes. With keys, learned values stay with their element when the manifest changes the order.
func align(mangled schema.Set) schema.Set {
	types := apitypes.BuiltIn()
	aligned := make(schema.Set, 0, len(mangled))
	for _, observed := range mangled {
		observed, _ := observed.WithoutServerOwned()
		if isAggregated(observed) {
			observed = observed.Unobserve("rules")
		}
		aligned = append(aligned, observed.Align(types.Of(observed.ID())))
	}
	return aligned
}

// hideSecrets removes from the schemas what would publish values of Secrets. The agent then learns
// none of them. An annotation with a value in the manifest stays observed. So do the Secrets of hooks,
// because documents have only digests of their values. The first schemas are the custom ones.
func (d *draft) hideSecrets(custom int) {
	users := d.Manifest[:len(d.Manifest)-len(d.Secrets)]
	for i, partner := range manifest.PairNamesakes(schemaIDs(d.Mangled), identities(d.Manifest)) {
		if partner < 0 || partner >= len(users) || !isCore(users[partner], "Secret") {
			continue
		}
		at := ResourcePath(partner)
		if i < custom {
			at = schemaPath(i)
		}
		for _, path := range secretPaths(d.Mangled[i], users[partner]) {
			d.Mangled[i] = d.Mangled[i].Unobserve(path...)
			if path[0] != "metadata" && (i < custom || !isEmpty(users[partner][path[0]])) {
				continue // it is refused
			}
			d.warnings = append(d.warnings, at+"."+strings.Join(path, ".")+
				": it is not observed, because the status would show the values of the Secret: leave it out, or give an annotation a value in the manifest")
		}
	}
}

// isAggregated reports whether a controller writes the rules of a ClusterRole.
func isAggregated(s schema.Schema) bool {
	return s.ID().Kind == "ClusterRole" && s.Observes("aggregationRule")
}

func refuse(findings schema.Findings) field.ErrorList {
	var refusals field.ErrorList
	for _, finding := range findings {
		refusals = append(refusals, invalid("data."+finding.Path, finding.Message))
	}
	return refusals
}
