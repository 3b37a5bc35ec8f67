// Package apitypes has the facts about the types of the Kubernetes API that the observer-schema
// engine needs: the keys of list elements, and the form in which a server stores a value.
//
//	types := apitypes.BuiltIn()
//	refined := types.Refine(observed, desired)
//	refined.Compare(desired, live) // "cpu: 0.5" and "cpu: 500m" are equal, a sidecar moves no container
//
// The keys of built-in types come from client-go, those of other types from the OpenAPI document of a
// server, see [FromOpenAPI]. Without it, their lists have only the keys that an observer schema states. The written form of a built-in type is the result of a round trip through its
// Go type: quantities and times in their usual form, without omitted zero values. Other types are
// compared by value, see schema.Schema.ByValue. Their forms come from a server's answers, see
// schema.Schema.Accept.
//
// The package does not know the defaults that a server fills in for a zero that it has dropped
// ("timeoutSeconds: 0" becomes 1). They are in the server's answer, too.
//
// The package is pure: it asks no cluster.
package apitypes
