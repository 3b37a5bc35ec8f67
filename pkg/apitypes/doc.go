// Package apitypes tells the observer-schema engine what is known of the types
// of the Kubernetes API: by which keys the elements of a list are told apart,
// and how a server writes a value down.
//
//	types := apitypes.BuiltIn()
//	refined := types.Refine(observed, desired)
//	refined.Compare(desired, live) // "cpu: 0.5" and "cpu: 500m" are equal, a sidecar moves nobody
//
// The keys of built-in types come from client-go, those of others from the
// OpenAPI documents of a cluster, see [FromOpenAPI]. The written form of a
// built-in type is what a round trip through its Go type makes of the object:
// quantities and times in their usual form, zero values that nobody would see
// left out. Of a type that is not built in nobody knows
// that: its values are compared by value, see schema.Schema.ByValue, and what a
// server's answer shows is accepted with schema.Schema.Accept.
//
// Not known here are the defaults that a server fills in for a zero that it has
// dropped ("timeoutSeconds: 0" becomes 1): those too show in its answer.
//
// The package is pure: it asks no cluster.
package apitypes
