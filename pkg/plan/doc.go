// Package plan computes what an Application wants of each object: the desired state with
// the values that were learned, the observer schema refined by what is known of the type,
// and the marks. It caches that for an Application, packed, because most passes want what
// the last one wanted (ADR 034; the memory that packing saves is in ADR 037).
//
// The package reads no cluster. Where the target serves an object is for the loop to find
// out: see [Cache.Complete].
package plan
