// Package schema is the observer-schema engine. It decides which fields of a resource are observed,
// whether they match the desired state, and which patch restores them.
//
// An observer schema has the shape of the resource. A null is an observed value. The engine
// descends into an object or a list. Omitted fields are not observed. The last element of every
// list is its control dictionary with the valid lengths:
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
// [Mangle] checks such schemas against a manifest, and adds a default one for every resource
// without one. The result is parsed into a closed tree, and trusted from then on. With S a
// [Schema], D a desired and L a live object:
//
//	S.Project(D, L)         the observed fields of L, with the lengths of its lists
//	S.Compare(D, L)         where they differ from D
//	S.Patch(D, L)           the JSON Patch that restores these fields, and no others
//	S.Overlay(D, L)         L after that patch
//	S.LateInitialize(D, L)  D with observed values of L that D did not know
//	S.Retain(new, old)      a new D with the observed values that only the old one knows
//	S.Learned(D, M)         the values of D beyond the manifest M; Retain(M, Learned(D, M)) restores D
//	S.ObservedPart(D)       the observed fields of D
//	S.Released(D, P, E, L)  the fields and elements to remove: P and E are the former projection and learned values
//	S.Values(D, L)          each observed value, with its paths in D and in L
//	S.Forget(D, M, L, f)    D without learned values at the field f, which the server now refuses
//
// A null equals an absent field, and an absent object or list equals an empty one, unless its type is known.
// Numbers are compared by value. Otherwise the comparison is literal, and lists are aligned by
// index, unless knowledge about the API refines the schema:
//
//	S.Align(T)              the lists of type T are aligned by their merge keys
//	S.Accept(S.Forms(D, W)) accepts W, the form in which the server stored D
//	S.Keep(D, forms)        the remembered forms that still apply to D
//	S.ByValue()             for an unknown type, a null within a value equals an absent one
//
// A user may set the keys of a list, too: observer_schema_list_key in its control dictionary, with
// a name or a list of names. See [Schema.Align].
//
// # Laws
//
// Write M for a manifest, W for what a server wrote, and "~" for equal by the rules above. Each law
// holds for random schemas and objects of any shape. The fuzz target beside it checks the law.
//
//   - Reflexive: S.Compare(D, D) finds nothing, except a length that D itself violates. FuzzCompareSelf
//   - Repair: S.Compare(D, S.Overlay(D, L)) finds no difference that can be repaired, and fields that
//     are not observed are the same in S.Overlay(D, L) and in L. FuzzOverlay
//   - The patch is the overlay: an implementation of RFC 6902 that applies S.Patch(D, L) to L returns
//     S.Overlay(D, L). FuzzPatch
//   - Projections suffice: S.CompareProjection(D, S.Project(D, L)) finds what S.Compare(D, L) finds.
//     Fields that are not observed do not change a projection, and projecting twice is projecting
//     once. FuzzProject
//   - Known values stay: S.LateInitialize and S.Retain change no value that D has, and learning is
//     idempotent. Afterwards nothing is Unknown, except elements that follow a null in a list. The
//     law holds for manifests that [Mangle] accepts: no keyed element lacks its key. FuzzLearn
//   - Learned values are enough: with D = S.LateInitialize(M, L), S.Retain(M, S.Learned(D, M)) ~ D,
//     also after M has changed. FuzzRetain
//   - Acceptance: with A = S.Accept(S.Forms(D, W)), W does not differ under A, unless it has other
//     keys or shapes, and no object differs that did not differ before. FuzzAccept
//   - Forms are kept: S.Keep(D, S.Forms(D, W)) are the same forms, and a form survives being stored.
//     FuzzKeep
//   - Released values were ours: a value that S.Released removes was set under the former schema, is
//     neither desired nor learned, and its removal changes nothing that is observed. FuzzReleased
//   - Print and parse: S.Document() is valid, and parses to S. FuzzDocument
//   - Nothing is shared: no operation changes an argument, and no result shares memory with one,
//     except the values in differences. FuzzResults. A schema from a [Pool] equals the original.
//     FuzzShare
//   - Any bytes: a text is refused with its place and a remedy, or all operations work on it. FuzzBytes
//   - A second implementation, which is written from the rules alone, agrees. FuzzOracle
//
// Compare is not symmetric, because L may have more, and two schemas do not merge.
//
// # Use
//
// No function changes its arguments, and all functions are safe for concurrent use. Objects must be
// JSON as package manifest decodes it, with at most manifest.MaxDepth levels. Time and memory are
// proportional to the objects and the schema: a schema has at most 8 keys for a list, findings of each
// sort end after 1,000, and a patch is at most as large as an API server accepts. The next patch has
// the rest. The package knows no cluster and no Application.
package schema
