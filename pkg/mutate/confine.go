package mutate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Scope limits how far Applications reach: the flag --scope of webhook and agent.
type Scope string

const (
	// NamespaceScope confines an Application to its own namespace.
	NamespaceScope Scope = "namespace"
	// ClusterScope allows it every namespace, and cluster-scoped objects.
	ClusterScope Scope = "cluster"
)

// Object is a resource of a manifest, with the facts that an API server knows about its kind.
type Object struct {
	// Ref has the namespace of the manifest. Its name is empty if the manifest does not identify
	// the resource. Another check refuses that.
	manifest.Ref

	ClusterScoped bool
	// Guessed reports that the API server does not know the kind. The resource is then a guess, and
	// only the target knows the scope.
	Guessed bool
}

// ObjectAt returns the object of an identity, for a kind with this mapping.
func ObjectAt(id manifest.ID, mapping *meta.RESTMapping) Object {
	return Object{
		Ref:           manifest.Ref{ID: id, Resource: mapping.Resource},
		ClusterScoped: mapping.Scope.Name() != meta.RESTScopeNameNamespace,
	}
}

// Home is the place of an Application.
type Home struct {
	// Hub is its namespace, and Target is the namespace of its objects on the target. They differ
	// only if the agent maps namespaces.
	Hub, Target string
	// Account reports that a service account of that namespace writes the objects. The API server
	// then checks its rights instead of the agent's.
	Account bool
}

// Confine returns the places of the objects, in the same order. It refuses objects that an
// Application of that home must not reach, and two descriptions of one object. It is the first of
// the three locks: webhook and agent both call it. It trusts what an API server reports about a
// kind, never the manifest.
func (s Scope) Confine(home Home, objects []Object) ([]manifest.Ref, field.ErrorList) {
	var refusals field.ErrorList
	refs := make([]manifest.Ref, 0, len(objects))
	placed := map[place]manifest.ID{}
	for i, object := range objects {
		ref, refusal := s.place(home, i, object)
		refs = append(refs, ref)
		switch {
		case object.Name == "":
			continue
		case refusal != nil:
			refusals = append(refusals, refusal)
			continue
		}
		at := placeOf(ref)
		if former, taken := placed[at]; taken && former != object.ID { // the schema reports two equal identities
			refusals = append(refusals, invalid(ResourcePath(i),
				fmt.Sprintf("The resource is defined twice: %s is %s, which the manifest has too: leave one out", object.ID, former)))
		}
		placed[at] = object.ID
	}
	return refs, refusals
}

// rbacGroup has the kinds that grant rights. The API server checks the rights of the client that
// writes them. That client may be the agent.
const rbacGroup = "rbac.authorization.k8s.io"

func (s Scope) place(home Home, i int, object Object) (manifest.Ref, *field.Error) {
	ref := object.Ref
	switch {
	case object.Resource.Group == rbacGroup && !home.Account:
		return ref, forbidden(ResourcePath(i)+".kind", fmt.Sprintf(
			"an agent that creates a %s grants its own rights, not those of the Application's user: name a service account with that right in annotation %s, or have an administrator create it",
			object.Kind, application.ServiceAccountAnnotation))
	case object.ClusterScoped && s != ClusterScope:
		return ref, forbidden(ResourcePath(i)+".kind", fmt.Sprintf(
			"%s is not namespaced, and an Application creates objects in its own namespace only: have an administrator create it", object.Kind))
	case object.ClusterScoped:
		ref.Namespace = "" // the API server ignores the manifest's namespace
	case object.Namespace == "" || object.Namespace == home.Hub:
		ref.Namespace = home.Target
	case s != ClusterScope:
		return ref, forbidden(ResourcePath(i)+".metadata.namespace", fmt.Sprintf(
			"an Application creates objects in its own namespace only: leave it out, or create the Application in namespace %q", object.Namespace))
	}
	return ref, nil
}

// place is the location of an object, in any version of its API.
type place struct {
	resource        schema.GroupResource
	namespace, name string
}

func placeOf(ref manifest.Ref) place {
	return place{ref.Resource.GroupResource(), ref.Namespace, ref.Name}
}
