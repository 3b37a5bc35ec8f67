package observer

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
)

// scope is what one informer watches: a resource, in one namespace or, without a
// name, in all of the cluster.
type scope struct {
	resource  gvr.GroupVersionResource
	namespace string
}

// String returns "/v1, Resource=pods" and "/v1, Resource=pods in namespace demo".
func (s scope) String() string {
	if s.namespace == metav1.NamespaceAll {
		return s.resource.String()
	}
	return s.resource.String() + " in namespace " + s.namespace
}

// scopeOf returns the scope of an object. Cluster-scoped objects have no namespace, so that their
// scope is the cluster, with and without Options.Namespaces.
func (o *Options) scopeOf(at key) scope {
	if len(o.Namespaces) == 0 {
		return scope{resource: at.resource}
	}
	return scope{at.resource, at.namespace}
}

// watches reports whether the objects of a scope are to be watched.
func (o *Options) watches(s scope) bool {
	return s.namespace == metav1.NamespaceAll || slices.Contains(o.Namespaces, s.namespace)
}
