// Package plan computes what an Application wants of each object: the desired state with learned
// values, the observer schema refined by what is known of the type, and the marks. It caches that for
// an Application, packed, because most passes want what the last one wanted (ADR 034; ADR 037 has the
// memory that packing saves).
//
// The package reads no cluster. The loop finds out where the target serves an object: see [Cache.Complete].
package plan
