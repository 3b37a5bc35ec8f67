// Package skew has a former version of webhook, agent and manifests together with the present one: an
// upgrade, a downgrade, and replicas of both versions at once, while objects drift. The file former
// names the commit of the former version, which the history of the repository must have.
package skew
