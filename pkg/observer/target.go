package observer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Owner names the owner of targets.
type Owner = types.NamespacedName

// Target is an object that an owner wants observed.
type Target struct {
	manifest.Ref

	// Schema has the fields that the owner wants to read.
	Schema schema.Schema
	// Marked has the fields that must match Desired: those of Schema and the owner's marks.
	Marked  schema.Schema
	Desired manifest.Packed
	// Revision differs between two targets for one object if any field above differs. An object
	// that was observed under another revision is read again, not compared.
	Revision string
}

// key is an object of a kind.
type key struct {
	resource        gvr.GroupVersionResource
	namespace, name string
}

func keyOf(target Target) key {
	return key{resource: target.Resource, namespace: target.Namespace, name: target.Name}
}

// scope is the scope of one informer: a resource in one namespace or, without a name, in the whole
// cluster.
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
