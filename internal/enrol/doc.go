// Package enrol makes a cluster a target of a hub, and takes it out again, with
// the rights of the hub's administrator:
//
//	kubectl-krake enrol east --out east     # on the hub: identity and rights; here: files
//	kubectl apply -k east                   # on the cluster east: its agent
//	kubectl-krake remove east               # on the hub: refused while Applications are on it
//
// On the hub a cluster is a ServiceAccount in the namespace krake-agents of the
// cluster's name, a Role in each namespace whose Applications it reads, and a
// Secret that its token is bound to. All of it carries the label [application.EnrolmentLabel], by
// which it is found when the cluster is removed; what has the name but not the
// label is somebody else's, and so is what has the label but another name.
//
// It writes nothing on the target: what it needs there is a kustomization, which
// has the hub's address and the token. The token is shown nowhere.
package enrol
