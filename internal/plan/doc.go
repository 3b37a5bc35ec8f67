// Package plan computes the desired state of each object: the spec with learned values, the
// observer schema refined by the type, and the marks. It caches the plan of an Application, packed,
// because most passes compute the same as the last one (ADR 042).
//
// The package reads no cluster. The loop finds out where the target serves an object: see [Cache.Complete].
package plan
