// Package ha tests what happens while agents, webhooks and API servers are replaced.
//
// Two agents of one cluster, as the shipped Deployment has them: one acts, the other waits for the Lease. The tests end
// the active agent in every way while there is work. In the audit log, the credentials identify the writer of each
// request. They pause the active agent, and resume it when the other one acts. They also run an agent of the same name
// on another target, which must not act at all.
//
// A former version of webhook, agent and manifests together with the present one: an upgrade, a downgrade, and replicas
// of both versions at once, while objects drift. The file former names the commit of the former version, which the
// history of the repository must have.
//
// etcd is restored from a snapshot while webhook and agents run: on the hub, which is a target itself, and on the cluster
// of another agent. The clocks of the API servers' versions then go back.
package ha
