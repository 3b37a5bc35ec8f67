// Package ha tests two agents of one cluster, as the shipped Deployment has them: one
// acts, the other waits for the Lease. The tests end the active agent in every way
// while there is work. In the audit log, the credentials identify the writer of each
// request. They pause the active agent, and resume it when the other one acts. They
// also run an agent of the same name on another target, which must not act at all.
//
// The package also tests the horizontal autoscaler of the real controller manager,
// which here runs every second.
package ha
