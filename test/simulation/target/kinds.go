package target

import (
	"slices"
	"strings"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is one of the kinds that are served.
type kind struct {
	schema.GroupVersionKind

	resource   string
	namespaced bool
}

// kinds are all that are served, those of a group in a row.
func kinds() []kind {
	core := func(name, resource string, namespaced bool) kind {
		return kind{schema.GroupVersionKind{Version: "v1", Kind: name}, resource, namespaced}
	}
	return []kind{
		core("ConfigMap", "configmaps", true),
		core("Namespace", "namespaces", false),
		core("Service", "services", true),
		core("ServiceAccount", "serviceaccounts", true),
		{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "customresourcedefinitions", false},
		{schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, "leases", true},
		{schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, "events", true},
	}
}

// kindOf gives the kind of a resource.
func kindOf(group, version, resource string) (kind, bool) {
	all := kinds()
	at := slices.IndexFunc(all, func(k kind) bool {
		return k.Group == group && k.Version == version && k.resource == resource
	})
	if at < 0 {
		return kind{}, false
	}
	return all[at], true
}

func (k kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.resource}
}

// discovery is the answer of /api, for the group without a name, or of /apis.
func discovery(core bool) discoveryv2.APIGroupDiscoveryList {
	list := discoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv2.SchemeGroupVersion.String(), Kind: "APIGroupDiscoveryList"},
	}
	for _, k := range kinds() {
		if (k.Group == "") != core {
			continue
		}
		last := len(list.Items) - 1
		if last < 0 || list.Items[last].Name != k.Group {
			list.Items = append(list.Items, groupOf(k))
			last++
		}
		version := &list.Items[last].Versions[0]
		version.Resources = append(version.Resources, k.discovery())
	}
	return list
}

func groupOf(k kind) discoveryv2.APIGroupDiscovery {
	return discoveryv2.APIGroupDiscovery{
		ObjectMeta: metav1.ObjectMeta{Name: k.Group},
		Versions:   []discoveryv2.APIVersionDiscovery{{Version: k.Version, Freshness: discoveryv2.DiscoveryFreshnessCurrent}},
	}
}

func (k kind) discovery() discoveryv2.APIResourceDiscovery {
	scope := discoveryv2.ScopeCluster
	if k.namespaced {
		scope = discoveryv2.ScopeNamespace
	}
	return discoveryv2.APIResourceDiscovery{
		Resource: k.resource, SingularResource: strings.ToLower(k.Kind), Scope: scope,
		ResponseKind: &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind},
		Verbs:        []string{"create", "delete", "get", "list", "patch", "update", "watch"},
	}
}
