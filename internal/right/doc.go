// Package right decides whether this process may act as the agent of its cluster, and
// stops its writes while it may not.
//
// Two Leases decide it. One is on the target: of the replicas that reach it, the holder
// acts. The other is on the hub: it belongs to the first target that uses the cluster's
// name. Valid: two replicas of a Deployment, of which the second takes over both Leases
// as soon as it has that of the target. Invalid: an agent that was installed on another
// target under the same name. The UID of the target's namespace kube-system identifies
// each target. The second one is refused ([Leadership.Refusal]) until an administrator
// deletes the Lease on the hub, even if the first one no longer renews it.
//
// With several shards, each has a Lease on the target, and the Applications of some namespaces. Only the first
// shard has the one on the hub; the others read that it is still the first shard's.
//
// A target that does not answer suspends only the right to write:
//
//	may write  --no renewal for RenewDeadline-->  may not write (TargetLost)
//	may not write  --renewed, no other held it meanwhile-->  may write (TargetBack)
//	may not write  --another held it meanwhile-->  ErrLost, the process ends
//
// A Lease with an older version than before means that the data of its server was restored. Then the
// process ends, too: what it knows of other objects may never have happened.
//
// A process that waits for a Lease takes it when it has seen it unchanged for its
// whole duration, by its own clock. The holder counts from the time before it sent the
// last renewal, so it stops earlier. The times in a Lease are never compared with a
// clock, so clocks may differ.
//
// [Leadership] is the right. [Fence] checks it before each request, [OnceActing] before work
// starts, and [Outlive] lets a running pass end.
//
// The package does not know what the process does with its right. It cannot call back a
// write that was sent before the right ended: writes need their own preconditions.
package right
