package webhook

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// writer is the account that writes the objects of an Application on this cluster.
type writer struct{ namespace, name string }

// writerOf returns the service account of an Application, or without one that of the agent.
func writerOf(namespace, account string) writer {
	if account == "" {
		return writer{application.AgentsNamespace, application.LocalCluster}
	}
	return writer{namespace, account}
}

// isAgent reports that the agent writes as itself.
func (w writer) isAgent() bool { return w.namespace == application.AgentsNamespace }

func (w writer) String() string {
	if w.isAgent() {
		return "the agent"
	}
	return "service account " + w.name
}

// user returns the account as the API server authenticates it.
func (w writer) user() authenticationv1.UserInfo {
	return authenticationv1.UserInfo{
		Username: serviceaccount.MakeUsername(w.namespace, w.name),
		Groups:   append(serviceaccount.MakeGroupNames(w.namespace), user.AllAuthenticated),
	}
}

// writerAccess is what is known about the creation of the objects before it.
type writerAccess struct {
	writer writer
	// denied are the rights to create that the writer does not have, and agentDenied those that the agent does not have
	// for another writer: to read the objects, and to act as that account.
	denied, agentDenied []mutate.Need
	// adopts: objects may exist already.
	adopts bool
	// known reports that the objects are created on this cluster, and that the rights are known.
	known bool
}

func creation(ref manifest.Ref) mutate.Access {
	return mutate.Access{Verb: "create", Group: ref.Resource.Group, Resource: ref.Resource.Resource, Namespace: ref.Namespace}
}
