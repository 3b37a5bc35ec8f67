package reconcile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// With the wide scope an Application reaches other namespaces and what is in
// none, each under its own place, and deletes it from there.
func TestClusterScope(t *testing.T) {
	w := newWorld(t, `
{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: other}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: other, namespace: demo}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}}
`, "")
	w.Scope = mutate.ClusterScope
	w.mustReconcile(t)
	got := map[string]string{}
	for name, live := range w.objects {
		got[name] = (&unstructured.Unstructured{Object: live}).GetNamespace()
	}
	if diff := cmp.Diff(map[string]string{"ConfigMap config": "other", "Namespace other": "", "Service web": "demo"}, got); diff != "" {
		t.Errorf("namespaces of the objects (-want +got):\n%s", diff)
	}
	held := []manifest.ID{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "other", Name: "config"},
		{APIVersion: "v1", Kind: "Namespace", Name: "other"},
		{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "web"},
	}
	if diff := cmp.Diff(held, w.app(t).Inventory); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
	w.checkQuiet(t)

	deleted(w)
	w.Scope = mutate.NamespaceScope // what it made, it deletes on proof, whatever it may make now
	w.mustReconcile(t)
	if len(w.objects) > 0 {
		t.Errorf("left: %v", w.objects)
	}
}

// An identity that this agent cannot take on is no reason to act as itself.
func TestServiceAccount(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.cm.Annotations[application.ServiceAccountAnnotation] = "deployer"
	w.mustReconcile(t)
	w.checkReconciled(t, application.StateFailed, "Refused",
		`refused: this agent does not act as service account "deployer": leave the annotation krake.dev/service-account out`)
	if len(w.objects) > 0 {
		t.Errorf("created: %v", w.objects)
	}
}
