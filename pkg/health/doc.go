// Package health computes the health of a live object: its kstatus, its Pods, and the address of a Service.
//
//	health.Of(deployment) // {InProgress "Available: 2/3", DEGRADED, 2 of 3 Pods}
//	health.Of(configMap)  // {Current, RUNNING}: it runs nothing, nothing can be wrong
//	health.Of(service)    // {Current, RUNNING, "10.0.0.1:80,443"}
//
// [RollUp] combines many: the worst state wins, and Pods are counted together.
//
// [Of] depends on the object alone, not on the time. It accepts any JSON: an unreadable object is
// [StatusUnknown]. A [Health] is comparable, so that == reports whether anything is new.
//
// Where kstatus and the Pods contradict each other, the Pods win: a Pod that failed is Failed, a
// StatefulSet that waits for a user to delete its Pods (OnDelete) is InProgress as long as some are
// missing, and a suspended Job is as its owner wants it.
//
// The message of a condition is left out, because it may quote what a reader of the Application must
// not see. The reason is named instead: "Ready is False: ProvisioningFailed".
package health
