package ignored

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	groups "k8s.io/apimachinery/pkg/runtime/schema"
)

// Read reads the object of another tool. The error names the field that is wrong.
func Read(object map[string]any) (Source, error) {
	u := &unstructured.Unstructured{Object: object}
	var read func(*unstructured.Unstructured) (Source, error)
	switch kind := u.GroupVersionKind().GroupKind(); kind {
	case groups.GroupKind{Group: "argoproj.io", Kind: "Application"}:
		read = readArgoCD
	case groups.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}:
		read = readFlux
	case groups.GroupKind{Group: "fleet.cattle.io", Kind: "Bundle"}:
		read = readFleet
	default:
		return Source{}, fmt.Errorf("%s is not supported: name an Application of Argo CD, a HelmRelease of Flux or a Bundle of Fleet", kind)
	}
	if u.GetName() == "" {
		return Source{}, errors.New("metadata.name is missing: add it")
	}
	return read(u)
}
