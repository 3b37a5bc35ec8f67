package mutate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Scope is how far Applications reach: the flag --scope of webhook and agent.
type Scope string

const (
	// NamespaceScope keeps an Application in its own namespace.
	NamespaceScope Scope = "namespace"
	// ClusterScope lets it reach every namespace, and what is in none.
	ClusterScope Scope = "cluster"
)

// Object is a resource of a manifest, with what an API server tells of its kind.
type Object struct {
	// Ref has the namespace that the manifest says; its name is empty where the
	// manifest does not identify the resource, which is refused elsewhere.
	manifest.Ref

	// ClusterScoped tells that the kind is in no namespace.
	ClusterScoped bool
	// Guessed tells that the API server that was asked does not know the kind, so
	// that the resource is a guess and the scope is left open, for the target to tell.
	Guessed bool
}

// ObjectAt is a resource where the mapping of its kind says.
func ObjectAt(id manifest.ID, mapping *meta.RESTMapping) Object {
	return Object{
		Ref:           manifest.Ref{ID: id, Resource: mapping.Resource},
		ClusterScoped: mapping.Scope.Name() != meta.RESTScopeNameNamespace,
	}
}

// Home is where an Application is at home.
type Home struct {
	// Hub is its namespace, Target the one on the target where its objects are: the
	// same, unless the target's agent maps it.
	Hub, Target string
	// Account tells that a service account of that namespace writes the objects, so
	// that the API server looks at its rights, and not at the agent's.
	Account bool
}

// HomeOf is the home of an Application as the webhook knows it, which knows no
// mapping.
func HomeOf(namespace string, account bool) Home {
	return Home{Hub: namespace, Target: namespace, Account: account}
}

// Confine puts the objects where they belong, in the same order, or refuses
// those that an Application of that home may not reach. It is the first of
// the three locks: webhook and agent both call it, and what counts is what an
// API server tells of a kind, never what the manifest says. Two descriptions of
// one object are refused as well: it would never be as both say.
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
		if former, taken := placed[at]; taken && former != object.ID { // the same words twice are told by the schema
			refusals = append(refusals, invalid(resourcePath(i),
				fmt.Sprintf("The resource is defined twice: %s is %s, which the manifest has too: leave one out", object.ID, former)))
		}
		placed[at] = object.ID
	}
	return refs, refusals
}

// rbacGroup has the kinds by which rights are handed out. The API server looks
// at the rights of whoever writes them, which may be the agent.
const rbacGroup = "rbac.authorization.k8s.io"

func (s Scope) place(home Home, i int, object Object) (manifest.Ref, *field.Error) {
	ref := object.Ref
	switch {
	case object.Resource.Group == rbacGroup && !home.Account:
		return ref, forbidden(resourcePath(i)+".kind", fmt.Sprintf(
			"an agent that creates a %s hands out its own rights, not those of the Application's user: name a service account that may, in annotation %s, or have an administrator create it",
			object.Kind, application.ServiceAccountAnnotation))
	case object.ClusterScoped && s != ClusterScope:
		return ref, forbidden(resourcePath(i)+".kind", fmt.Sprintf(
			"%s is not namespaced, and an Application creates objects in its own namespace only: have an administrator create it", object.Kind))
	case object.ClusterScoped:
		ref.Namespace = "" // whatever the manifest says
	case object.Namespace == "" || object.Namespace == home.Hub:
		ref.Namespace = home.Target
	case s != ClusterScope:
		return ref, forbidden(resourcePath(i)+".metadata.namespace", fmt.Sprintf(
			"an Application creates objects in its own namespace only: leave it out, or create the Application in namespace %q", object.Namespace))
	}
	return ref, nil
}

// place is where an object is, whatever version of its API describes it.
type place struct {
	resource        schema.GroupResource
	namespace, name string
}

func placeOf(ref manifest.Ref) place {
	return place{ref.Resource.GroupResource(), ref.Namespace, ref.Name}
}
