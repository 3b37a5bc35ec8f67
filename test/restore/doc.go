// Package restore restores etcd from a snapshot while webhook and agents run: on the hub, which is a
// target itself, and on the cluster of another agent. The clocks of the API servers' versions then go
// back.
package restore
