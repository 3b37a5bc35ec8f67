package mutate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Access is one right. Without a Name it covers all objects of the resource.
type Access struct {
	Verb, Group, Resource, Namespace, Name string
}

// String returns a description: `create deployments.apps in namespace "demo"`.
func (a Access) String() string {
	text := a.Verb + " " + a.Resource
	if a.Group != "" {
		text += "." + a.Group
	}
	if a.Name != "" {
		text += fmt.Sprintf(" %q", a.Name)
	}
	if a.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", a.Namespace)
	}
	return text
}

// Need is a right that the user of an Application must have, and the place in the ConfigMap that
// requires it.
type Need struct {
	Access

	Path string
	// Because is the reason, if the place does not explain it.
	Because string
}

// Accounts decides which account Applications are carried out as.
type Accounts struct {
	// Required reports that every Application is carried out as a service account of its namespace.
	// It is the flag --require-service-account of webhook and agent.
	Required bool
}

// For returns the account for an Application that names this account, or none. It is empty for the
// agent itself.
func (a Accounts) For(named string) string {
	if named == "" && a.Required {
		return application.DefaultServiceAccount
	}
	return named
}

// needs are rights, each once.
type needs struct {
	list  []Need
	known sets.Set[Access]
	// source is the key of the text that defines the resources.
	source string
}

func (n *needs) add(path string, access Access) {
	if !n.known.Has(access) {
		n.known.Insert(access)
		n.list = append(n.list, Need{Access: access, Path: relocate(path, n.source)})
	}
}

func (n *needs) addObject(path string, ref manifest.Ref, verbs ...string) {
	for _, verb := range verbs {
		n.add(path, Access{Verb: verb, Group: ref.Resource.Group, Resource: ref.Resource.Resource, Namespace: ref.Namespace})
	}
}

// needsOf returns the rights to the objects.
func needsOf(cm *corev1.ConfigMap, wanted, left []manifest.Ref) *needs {
	source, _ := application.SpecOf(cm).Source()
	n := &needs{known: sets.Set[Access]{}, source: source}
	writes := []string{"create", "patch", "delete"}
	verbs := writes
	if settings, _ := application.SettingsOf(cm); settings.Adopt {
		verbs = []string{"get", "create", "patch", "delete"}
	}
	for i, ref := range wanted {
		if ref.Name != "" {
			n.addObject(ResourcePath(i), ref, verbs...)
		}
	}
	for _, ref := range left {
		n.addObject("data."+application.ManifestKey, ref, writes...)
	}
	return n
}

// NeedsOf returns the first rights of [Accounts.Needs], those to the objects of the manifest. An object
// without a name needs none.
func NeedsOf(cm *corev1.ConfigMap, wanted []manifest.Ref) []Need {
	return needsOf(cm, wanted, nil).list
}

// Needs returns the rights that the user must have, each once:
//   - to create, patch and delete the objects of the manifest, and those that left it,
//     which the agent deletes,
//   - to get the objects of the manifest, if the Application adopts objects that exist already:
//     its status shows values of them,
//   - to deploy to another cluster than this one, also if the Application leaves it,
//   - to act as the service account, if it is not carried out as the agent,
//   - to delete the Application, if it was a plain ConfigMap that others may write, or if
//     its own Pods can delete it.
//
// The stored ConfigMap is empty if there is none.
func (a Accounts) Needs(cm, stored *corev1.ConfigMap, wanted, left []manifest.Ref) []Need {
	n := needsOf(cm, wanted, left)
	for _, cluster := range []string{application.ClusterOf(cm), application.ClusterOf(stored)} {
		if cluster != application.LocalCluster {
			n.add(annotationPath(application.ClusterAnnotation), Access{
				Verb: application.DeployVerb, Group: application.Domain, Resource: application.ClustersResource, Name: cluster,
			})
		}
	}
	deletion := Access{
		Verb: "delete", Group: application.Domain, Resource: application.ApplicationsResource, Namespace: cm.Namespace, Name: cm.Name,
	}
	if stored.Name != "" && !application.IsApplication(stored) {
		n.add(annotationPath(application.FormatAnnotation), deletion)
	}
	if application.HooksOf(cm).Complete {
		n.add(annotationPath(application.HooksAnnotation), deletion)
	}
	if account := a.For(cm.Annotations[application.ServiceAccountAnnotation]); account != "" {
		need := Need{
			Access: Access{Verb: "impersonate", Resource: "serviceaccounts", Namespace: cm.Namespace, Name: account},
			Path:   annotationPath(application.ServiceAccountAnnotation),
		}
		if _, named := cm.Annotations[application.ServiceAccountAnnotation]; !named {
			need.Because = "an Application that names no account is carried out as this one"
		}
		n.list = append(n.list, need)
	}
	return n.list
}

// Left returns the former objects that are no longer wanted. A former resource without an identity
// was never an object.
func Left(wanted, former []manifest.Ref) []manifest.Ref {
	left := slices.Clone(former)
	return slices.DeleteFunc(left, func(ref manifest.Ref) bool {
		return ref.Name == "" || slices.ContainsFunc(wanted, func(w manifest.Ref) bool { return placeOf(w) == placeOf(ref) })
	})
}
