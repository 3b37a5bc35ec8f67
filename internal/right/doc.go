// Package right decides whether this process may act as the agent of its cluster,
// and holds back what it does without that right.
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
//	may not write  --renewed, no other held it meanwhile-->  may write (TargetBack)
//	may not write  --another held it meanwhile-->  ErrLost, the process ends
//
// A process that waits for a Lease takes it when it has seen it unchanged for its
// whole duration, by its own clock. The holder counts from before it asked for the
// last renewal, and stops earlier. The times in a Lease are never compared with a
// clock, so that it does not matter how wrong clocks are.
//
// [Tenure] is the right, [Fence] and [OnceActing] hold to it what the process sends
// and runs, and [Outlive] lets a pass that is under way end.
//
// The package does not know what the process does by its right. A write that was on
// its way when the right ended is not called back: writes need preconditions of
// their own.
package right
