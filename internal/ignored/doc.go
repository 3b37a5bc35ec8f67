// Package ignored translates the ignore rules of other tools into observer schemas. It reads three
// kinds of objects: Applications of Argo CD, HelmReleases of Flux, and Bundles of Fleet.
//
//	source, err := ignored.Read(application)
//	managed := ignored.ManagedBy(source, objects)
//	translation := ignored.NewTranslation(source)
//	change, err := translation.Apply(ctx, target)  // for each of the managed objects
//	lines := translation.Untranslated()            // what no observer schema can say
//
// A rule says which fields of which objects the tool does not compare. Its translation removes these
// fields from the observer schemas of these objects:
//
//	/spec/replicas                                   becomes  spec.replicas
//	.spec.template.spec.containers[].image           becomes  spec.template.spec.containers[0].image, ...
//	.spec.x | keys                                   is not translated: it selects no field
//
// Expressions of jq are evaluated by the library that Argo CD uses, on the manifest of each object. A
// context limits the time, so this package is not pure.
//
// The package knows the rules and the shape of a schema. Its caller decides which fields are observed
// without the rules.
package ignored
