package mutate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Limits of a specification.
const (
	// MaxSpecBytes bounds the text of manifest and observer schema together. The
	// rest of the 1 MiB that a ConfigMap holds is for the status documents.
	MaxSpecBytes = 256 << 10
	// MaxResources bounds the number of resources in a manifest.
	MaxResources = 100
)

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

// Desire computes the desired state of an Application in the namespace from its
// spec and from what its agent has learned. Nothing else goes into it, so that
// webhook and agent come to the same result. With refusals the result is empty.
func Desire(spec application.Spec, learned []map[string]any, namespace string) (Desired, []string, field.ErrorList) {
	if refusals := checkSize(spec); len(refusals) > 0 {
		return Desired{}, nil, refusals
	}
	resources, custom, err := spec.Resources()
	if err != nil {
		return Desired{}, nil, field.ErrorList{invalid("data", err.Error())}
	}
	mangled, findings := schema.Mangle(resources, custom)
	mangled, owned := align(mangled, len(custom))
	refusals := refuse(findings.Errors())
	objects := objectsOf(resources)
	refusals = append(refusals, checkResources(objects)...)
	refusals = append(refusals, Confine(objects, namespace)...)
	refusals = append(refusals, checkNamesakes(objects, namespace)...)
	if len(refusals) > 0 {
		return Desired{}, nil, refusals
	}
	desired, err := desire(mangled, objects, learned)
	if err != nil {
		return Desired{}, nil, field.ErrorList{invalid("data."+application.LearnedKey, err.Error())}
	}
	return desired, slices.Concat(warnings(findings.Warnings()), owned), nil
}

// align tells the schemas the keys of built-in lists, so that what was learned
// of an element stays with it when the manifest is put in another order, and
// leaves out what only a server can write. Of that it warns for the user's own
// schemas, which are the first, and of a status in any case: to a kind without
// the subresource it is a field like others.
func align(mangled schema.Set, custom int) (schema.Set, []string) {
	types := apitypes.BuiltIn()
	aligned := make(schema.Set, 0, len(mangled))
	var owned []string
	for i, observed := range mangled {
		observed, left := observed.WithoutServerOwned()
		for _, path := range left {
			switch {
			case i < custom:
				owned = append(owned, fmt.Sprintf("data.%s[%d].%s: it is for the server to write, and not observed", application.ObserverSchemaKey, i, path))
			case path == "status":
				owned = append(owned, fmt.Sprintf("data.%s: the status of %s is for the server to write, and not observed", application.ManifestKey, observed.ID()))
			}
		}
		aligned = append(aligned, observed.Align(types.Of(observed.ID())))
	}
	return aligned, owned
}

func desire(mangled schema.Set, resources, learned []map[string]any) (Desired, error) {
	schemas, err := mangled.Of(resources)
	if err != nil {
		return Desired{}, err
	}
	retained, err := mangled.Retain(resources, learned)
	if err != nil {
		return Desired{}, err
	}
	return Desired{
		Mangled: mangled,
		// What was learned of a resource that left the manifest is appended: it is desired no more.
		Resources: retained[:len(resources)],
		Schemas:   schemas,
		Manifest:  resources,
	}, nil
}

// Confine keeps an Application in its own namespace: a resource may name that
// namespace or none. (That a kind is namespaced at all is known on the target
// only, and checked there.)
func Confine(resources []map[string]any, namespace string) field.ErrorList {
	var refusals field.ErrorList
	for i, resource := range resources {
		id, err := manifest.Identify(resource)
		if err == nil && id.Namespace != "" && id.Namespace != namespace {
			refusals = append(refusals, &field.Error{
				Type:  field.ErrorTypeForbidden,
				Field: resourcePath(i) + ".metadata.namespace",
				Detail: fmt.Sprintf("an Application creates objects in its own namespace only: leave it out, or create the Application in namespace %q",
					id.Namespace),
			})
		}
	}
	return refusals
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

// invalid is a refusal that does not repeat the value: it may be a secret one.
func invalid(path, detail string) *field.Error {
	return field.Invalid(field.NewPath(path), field.OmitValueType{}, detail)
}

func resourcePath(i int) string {
	return fmt.Sprintf("data.%s[%d]", application.ManifestKey, i)
}
