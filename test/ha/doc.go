// Package ha tests two agents of one cluster, as the shipped Deployment has
// them: one acts, the other waits for the Lease. It ends the one that acts in
// every way, while there is work to do, and reads in the audit log who did what,
// by the credentials of the requests. It stops the one that acts, and lets it go on
// when the other one acts already; and it has an agent of the same name on another
// target, which must not act at all.
//
// It also has the horizontal autoscaler of the real controller manager, which
// here looks every second.
package ha
