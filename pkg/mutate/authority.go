package mutate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Access is one right. Name is empty where the right to one of many is not enough.
type Access struct {
	Verb, Group, Resource, Namespace, Name string
}

// String says what the right allows: `create deployments.apps in namespace "demo"`.
func (a Access) String() string {
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	text := a.Verb + " " + resource
	if a.Name != "" {
		text += fmt.Sprintf(" %q", a.Name)
	}
	if a.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", a.Namespace)
	}
	return text
}

// Need is a right that whoever submits an Application must have, and the place
// in the ConfigMap that asks for it.
type Need struct {
	Access

	Path string
	// Because says why, where the place itself does not.
	Because string
}

// Accounts says as whom Applications are carried out.
type Accounts struct {
	// Required has every Application carried out as a service account of its
	// namespace: the flag --require-service-account of webhook and agent.
	Required bool
}

// Of gives the account that the Application is carried out as; empty: the
// agent itself.
func (a Accounts) Of(cm *corev1.ConfigMap) string {
	return a.For(cm.Annotations[application.ServiceAccountAnnotation])
}

// For is [Accounts.Of] an Application that names this account, or none.
func (a Accounts) For(named string) string {
	if named == "" && a.Required {
		return application.DefaultServiceAccount
	}
	return named
}

// Needs are the rights that the submitting user must have: to create, patch and
// delete what the manifest has, and what left it, which the agent will delete;
// to deploy to the cluster if it is not this one, and to the one that it is
// moved away from; to act as the service account that it is carried out as, if
// that is not the agent; and to delete Applications, to make one of a ConfigMap
// that others may be writing, or one that its own Pods can delete. Each right is there once. Stored is the ConfigMap as
// it is, empty if there is none.
func (a Accounts) Needs(cm, stored *corev1.ConfigMap, wanted, left []manifest.Ref) []Need {
	var needs []Need
	known := map[Access]bool{}
	add := func(path string, access Access) {
		if !known[access] {
			known[access] = true
			needs = append(needs, Need{Access: access, Path: path})
		}
	}
	for i, ref := range wanted {
		addObject(add, resourcePath(i), ref)
	}
	for _, ref := range left {
		addObject(add, "data."+application.ManifestKey, ref)
	}
	for _, cluster := range []string{application.ClusterOf(cm), application.ClusterOf(stored)} {
		if cluster != application.LocalCluster {
			add(annotation(application.ClusterAnnotation), Access{
				Verb: application.DeployVerb, Group: application.Domain, Resource: application.ClustersResource, Name: cluster,
			})
		}
	}
	deletion := Access{
		Verb: "delete", Group: application.Domain, Resource: application.ApplicationsResource, Namespace: cm.Namespace, Name: cm.Name,
	}
	// Its writers of before have no say any more.
	if stored.Name != "" && !application.IsApplication(stored) {
		add(annotation(application.FormatAnnotation), deletion)
	}
	// Its Pods may delete it then.
	if application.HooksOf(cm).Complete {
		add(annotation(application.HooksAnnotation), deletion)
	}
	key, _ := application.SpecOf(cm).Source()
	for i := range needs {
		needs[i].Path = relocate(needs[i].Path, key)
	}
	return append(needs, a.impersonation(cm)...)
}

// impersonation is the need to act as the account, if there is one.
func (a Accounts) impersonation(cm *corev1.ConfigMap) []Need {
	if account := a.Of(cm); account != "" {
		need := Need{
			Access: Access{Verb: "impersonate", Resource: "serviceaccounts", Namespace: cm.Namespace, Name: account},
			Path:   annotation(application.ServiceAccountAnnotation),
		}
		if _, named := cm.Annotations[application.ServiceAccountAnnotation]; !named {
			need.Because = "an Application that names no account is carried out as this one"
		}
		return []Need{need}
	}
	return nil
}

func annotation(name string) string { return "metadata.annotations[" + name + "]" }

func addObject(add func(string, Access), path string, ref manifest.Ref) {
	for _, verb := range []string{"create", "patch", "delete"} {
		add(path, Access{Verb: verb, Group: ref.Resource.Group, Resource: ref.Resource.Resource, Namespace: ref.Namespace})
	}
}

// Left gives those of the former objects that are not wanted any more, but for
// what had no identity and so was never an object.
func Left(wanted, former []manifest.Ref) []manifest.Ref {
	left := slices.Clone(former)
	return slices.DeleteFunc(left, func(ref manifest.Ref) bool {
		return ref.Name == "" || slices.ContainsFunc(wanted, func(w manifest.Ref) bool { return placeOf(w) == placeOf(ref) })
	})
}
