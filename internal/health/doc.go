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
// If kstatus and the Pods contradict each other, the Pods decide. A failed Pod is Failed. A
// StatefulSet that waits for a user to delete its Pods (OnDelete) is InProgress while some are
// missing. A suspended Job matches its owner's intent.
//
// Health omits the message of a condition, because it may contain text that a reader of the
// Application must not see. It names the reason instead: "Ready is False: ProvisioningFailed".
package health
