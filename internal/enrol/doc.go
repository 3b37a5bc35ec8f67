// Package enrol makes a cluster a target of a hub, and takes it out again, with
// the rights of the hub's administrator:
//
//	kubectl-krake enrol east --out east     # on the hub: identity and rights; here: files
//	kubectl apply -k east                   # on the cluster east: its agent
//	kubectl-krake remove east               # on the hub: refused while Applications are on it
//
// On the hub a cluster has a ServiceAccount of its name in the namespace krake-agents, and
// a Secret that its token is bound to. It also has a Role in each namespace whose
// Applications it reads. All these objects have the label [application.EnrolmentLabel], by
// which the removal finds them. An object with the name but without the label belongs to
// another owner, and so does an object with the label but another name.
//
// The package writes nothing on the target. It makes a kustomization for it, with the
// hub's address and the token. It never prints the token.
package enrol
