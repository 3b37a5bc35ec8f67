// Package schema is the observer-schema engine: which fields of a resource are
// observed, whether they are as they should be, and what brings them back.
//
// An observer schema has the shape of the resource. A null is an observed
// value; an object or a list is looked into; what is not named is not observed.
// The last element of every list is its control dictionary, the legal lengths:
//
//	apiVersion: v1
//	kind: Service
//	metadata: {name: echo}
//	spec:
//	  type: null
//	  ports:
//	  - {port: null}
//	  - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 4}
//
// Invalid: a value that is not null ("spec: {type: NodePort}"), or a list
// without its control dictionary ("ports: [{port: null}]").
//
// [Mangle] checks such schemas against a manifest and adds a default one for
// every resource that has none. The result is parsed into a closed tree and
// trusted from then on. With S a [Schema], D a desired and L a live object:
//
//	S.Project(D, L)         the observed fields of L, with the lengths of its lists
//	S.Compare(D, L)         where they differ from D
//	S.Patch(D, L)           the JSON Patch that brings back those, and only those
//	S.Overlay(D, L)         L after that patch
//	S.LateInitialize(D, L)  D with the observed values that it did not know yet
//	S.Retain(new, old)      a new D with the observed values that only the old one knows
//	S.Learned(D, M)         what D knows beyond the manifest M; Retain(M, Learned(D, M)) knows it again
//	S.ObservedPart(D)       the observed fields of D
//	S.Released(D, P, E, L)  what left the spec: P and E were projection and learned values before
//	S.Values(D, L)          each observed value, with the ways to it in D and in L
//	S.Forget(D, M, L, f)    D without what was learned at the field f, which the server refuses now
//
// A null is the same as an absent field, an absent object as an empty one, an
// absent list as an empty one. Numbers are compared by value. Beyond that the
// comparison is literal and lists are aligned by index, unless the schema is
// refined by what is known of the API:
//
//	S.Align(T)              the lists of type T are aligned by their merge keys
//	S.Accept(S.Forms(D, W)) W, the form in which the server wrote D, is as good as D
//	S.Keep(D, forms)        those of all remembered forms that still are ones of D
//	S.ByValue()             of an unknown type, 0.5 and "500m" are the same
//
// A user may state the keys of a list, too: observer_schema_list_key in its
// control dictionary, a name or a list of names. See [Schema.Align].
//
// Nothing here changes its arguments, and all functions are safe for
// concurrent use. Objects must be JSON as package manifest decodes it, nested
// no deeper than manifest.MaxDepth. Time and memory are in proportion to the
// objects and the schema. The package knows no cluster and no Application.
package schema
