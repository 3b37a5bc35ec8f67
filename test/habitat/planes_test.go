package habitat

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// ownPlane starts a control plane for one test, in which prepare may act before the
// installation. The checks for all tests run at its end.
func ownPlane(t *testing.T, options installation.Options, prepare func(*plane)) *plane {
	t.Helper()
	p, err := newPlane(t.Context())
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, p.stop()) })
	prepare(p)
	kit.Must(t, p.install(t.Context(), options))
	t.Cleanup(func() {
		if t.Failed() {
			kit.ShowLog(p.installation.Logs()...)
		}
		kit.Must(t, errors.Join(p.checkCanaries(), p.checkRequests()))
	})
	return p
}

// loosePlane has a foreign definition of Habitats without validation.
func loosePlane(t *testing.T) *plane {
	t.Helper()
	anything := object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return ownPlane(t, installation.Options{Overlay: "habitat", Habitats: 1}, func(p *plane) {
		_, err := p.Dynamic.Resource(kit.Definitions).Create(t.Context(), &unstructured.Unstructured{Object: object{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "habitats.habitat.sh"},
			"spec": object{
				"group": "habitat.sh", "scope": "Namespaced",
				"names": object{"kind": "Habitat", "plural": "habitats", "singular": "habitat", "shortNames": []any{"hab"}},
				"versions": []any{object{
					"name": "v1beta1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": anything}, "subresources": object{"status": object{}},
				}},
			},
		}}, metav1.CreateOptions{})
		kit.Must(t, err)
	})
}
