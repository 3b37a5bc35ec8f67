package mutate_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

func located(apiVersion, kind, resource, namespace, name string, clusterScoped bool) mutate.Object {
	group, _ := schema.ParseGroupVersion(apiVersion)
	return mutate.Object{
		Ref: manifest.Ref{
			ID:       manifest.ID{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name},
			Resource: group.WithResource(resource),
		},
		ClusterScoped: clusterScoped,
	}
}

// The namespace of each object, and the refusals. Only the scope of the kind on the API server
// counts, not the text.
func TestConfine(t *testing.T) {
	config := func(namespace, name string) mutate.Object {
		return located("v1", "ConfigMap", "configmaps", namespace, name, false)
	}
	volume := func(namespace, name string) mutate.Object {
		return located("v1", "PersistentVolume", "persistentvolumes", namespace, name, true)
	}
	tests := []struct {
		why      string
		scope    mutate.Scope
		objects  []mutate.Object
		places   []string
		refusals []any
	}{
		{"without a namespace it gets that of the Application", mutate.NamespaceScope,
			[]mutate.Object{config("", "a")}, []string{"demo/a"}, []any{}},
		{"it may say so itself", mutate.NamespaceScope, []mutate.Object{config("demo", "a")}, []string{"demo/a"}, []any{}},
		{"another namespace is out of reach", mutate.NamespaceScope, []mutate.Object{config("other", "a")}, []string{"other/a"}, []any{
			`data.spec.manifest[0].metadata.namespace: Forbidden: an Application creates objects in its own namespace only: leave it out, or create the Application in namespace "other"`,
		}},
		{"what is in no namespace is out of reach", mutate.NamespaceScope, []mutate.Object{config("", "a"), volume("", "r")}, []string{"demo/a", "/r"}, []any{
			"data.spec.manifest[1].kind: Forbidden: PersistentVolume is not namespaced, and an Application creates objects in its own namespace only: have an administrator create it",
		}},
		{"a namespace in its text does not make it a namespaced one", mutate.NamespaceScope, []mutate.Object{volume("demo", "r")}, []string{"demo/r"}, []any{
			"data.spec.manifest[0].kind: Forbidden: PersistentVolume is not namespaced, and an Application creates objects in its own namespace only: have an administrator create it",
		}},
		{"a scope that nobody set is the narrow one", "", []mutate.Object{volume("", "r")}, []string{"/r"}, []any{
			"data.spec.manifest[0].kind: Forbidden: PersistentVolume is not namespaced, and an Application creates objects in its own namespace only: have an administrator create it",
		}},
		{"rights are not handed out, in whatever scope", mutate.ClusterScope, []mutate.Object{
			located("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", "", "r", false),
		}, []string{"/r"}, []any{
			"data.spec.manifest[0].kind: Forbidden: an agent that creates a RoleBinding grants its own rights, not those of the Application's user: name a service account with that right in annotation krake.dev/service-account, or have an administrator create it",
		}},
		{"the wide scope reaches everything", mutate.ClusterScope,
			[]mutate.Object{config("other", "a"), config("", "a"), volume("", "r")}, []string{"other/a", "demo/a", "/r"}, []any{}},
		{"what is in no namespace has none, whatever its text says", mutate.ClusterScope, []mutate.Object{volume("demo", "r")}, []string{"/r"}, []any{}},
		{"one object with and without its namespace", mutate.NamespaceScope, []mutate.Object{config("", "a"), config("demo", "a")}, []string{"demo/a", "demo/a"}, []any{
			"data.spec.manifest[1]: Invalid value: The resource is defined twice: v1 ConfigMap demo/a is v1 ConfigMap a, which the manifest has too: leave one out",
		}},
		{"one object by two versions of its API", mutate.NamespaceScope, []mutate.Object{
			located("apps/v1", "Deployment", "deployments", "", "a", false), located("apps/v1beta2", "Deployment", "deployments", "", "a", false),
		}, []string{"demo/a", "demo/a"}, []any{
			"data.spec.manifest[1]: Invalid value: The resource is defined twice: apps/v1beta2 Deployment a is apps/v1 Deployment a, which the manifest has too: leave one out",
		}},
		{"one name in two groups is two objects", mutate.NamespaceScope, []mutate.Object{
			located("apps/v1", "Deployment", "deployments", "", "a", false), located("example.com/v1", "Deployment", "deployments", "", "a", false),
		}, []string{"demo/a", "demo/a"}, []any{}},
		{"one name in two namespaces is two objects", mutate.ClusterScope,
			[]mutate.Object{config("a", "a"), config("b", "a")}, []string{"a/a", "b/a"}, []any{}},
		{"what has no identity is refused elsewhere", mutate.NamespaceScope, []mutate.Object{{}, {}}, []string{"demo/", "demo/"}, []any{}},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			refs, refusals := test.scope.Confine(mutate.Home{Hub: "demo", Target: "demo"}, test.objects)
			check.Equal(t, "refusals", test.refusals, messages(refusals))
			var places []string
			for _, ref := range refs {
				places = append(places, ref.Namespace+"/"+ref.Name)
			}
			check.Equal(t, "places", test.places, places)
		})
	}
}
