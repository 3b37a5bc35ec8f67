// Package health reads from a live object how it fares: its kstatus, the Pods
// that it runs, and where a Service is reached.
//
//	health.Of(deployment) // {InProgress "Available: 2/3", DEGRADED, 2 of 3 Pods}
//	health.Of(configMap)  // {Current, RUNNING}: it runs nothing, nothing can be wrong
//	health.Of(service)    // {Current, RUNNING, "10.0.0.1:80,443"}
//
// [RollUp] makes one out of many: the worst state wins, Pods are counted together.
//
// [Of] depends on the object alone, not on the time, and whatever JSON it is
// given, it gives an answer: what cannot be read is [StatusUnknown]. A [Health]
// is comparable, so that == tells whether anything is new.
//
// Where kstatus and the Pods say different things, it is not kstatus that is
// believed: a Pod that failed is Failed, a StatefulSet that waits for somebody
// to delete its Pods (OnDelete) is InProgress as long as some are missing, and a
// Job that is suspended is as its owner wants it.
//
// What a condition says in its own words is left out. It is text of whichever
// controller wrote it, and may quote what the reader of an Application must not
// see; the reason is named instead: "Ready is False: ProvisioningFailed".
package health
