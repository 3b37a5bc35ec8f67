// Package leases tells whether this process may act as the agent of its cluster.
//
// Two Leases decide it. One is on the target: of the replicas that reach it, its
// holder acts. The other is on the hub: of the targets that go by the cluster's
// name, the first one has it. Valid: two replicas of a Deployment, of which the
// second takes over both Leases as soon as it has that of the target. Invalid: an
// agent that was installed on another target under the same name. The UID of the
// target's namespace kube-system tells them apart, and the second one is refused
// ([Tenure.Refusal]) until an administrator deletes the Lease on the hub, however
// long the first one has been silent.
//
// A target that does not answer takes nothing from us but the right to write now:
//
//	may write  --no renewal for RenewDeadline-->  may not write (TargetLost)
//	may not write  --renewed, nobody held it meanwhile-->  may write (TargetBack)
//	may not write  --somebody held it meanwhile-->  ErrLost, the process ends
//
// Whoever waits for a Lease takes it when it has seen it unchanged for its whole
// duration, by its own clock; whoever holds it counts from before it asked for
// the last renewal, and stops earlier. Times that somebody wrote into a Lease are
// never compared with a clock, so that it does not matter how wrong clocks are.
//
// It does not know what the process does by its right, and a write that was on
// its way when the right ended is not called back: writes need preconditions of
// their own.
package leases
