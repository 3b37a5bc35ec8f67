package reconcile_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/test/check"
)

// With the wide scope, an Application creates and deletes objects in other namespaces and
// cluster-scoped objects, each at its own place.
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
	check.Equal(t, "namespaces of the objects", map[string]string{"ConfigMap other/config": "other", "Namespace other": "", "Service web": "demo"}, got)
	held := []manifest.ID{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "other", Name: "config"},
		{APIVersion: "v1", Kind: "Namespace", Name: "other"},
		{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "web"},
	}
	check.Equal(t, "inventory", held, w.app(t).Inventory)
	w.checkQuiet(t)

	deleted(w)
	w.Scope = mutate.NamespaceScope // it deletes with proof what it created, whatever its scope is now
	w.mustReconcile(t)
	w.checkObjects(t, 0)
}

// If the Application's account lacks a permission, no other identity acts in its place.
func TestServiceAccount(t *testing.T) {
	cases := []struct {
		name              string
		annotation        string
		required, missing bool
		calls             []string
		reason            string
	}{
		{"one that is named", "deployer", false, false, []string{"As demo deployer"}, "Ready"},
		{"one that is required", "", true, false, []string{"As demo krake-deployer"}, "Ready"},
		{"none", "", false, false, nil, "Ready"},
		{"one that is not there", "deployer", false, true, []string{"As demo deployer"}, "ServiceAccountNotFound"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, oneObject, "")
			w.RequireAccount = c.required
			if c.annotation != "" {
				w.annotate(application.ServiceAccountAnnotation, c.annotation)
			}
			if c.missing {
				w.failures["As demo deployer"] = reconcile.ErrNoAccount
			}
			_, err := w.reconcile(t)
			check.Equal(t, "it fails: "+check.Message(err), c.missing, err != nil)
			check.Equal(t, "accounts", c.calls, w.callsOf("As"))
			w.checkReason(t, application.ReadyCondition, c.reason)
			check.Equal(t, "nothing is created", c.missing, len(w.objects) == 0)
		})
	}
}

// The account is one of the namespace that contains the objects. An account in a target
// namespace with the name of the Application's namespace is not used.
func TestServiceAccountIsOfTheMappedNamespace(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.Namespaces.Map = map[string]string{"demo": "tenant"}
	w.annotate(application.ServiceAccountAnnotation, "deployer")
	w.mustReconcile(t)
	check.Equal(t, "accounts", []string{"As tenant deployer"}, w.callsOf("As"))
}

// The allowed namespaces are those of the target, which contain the objects.
func TestAllowedNamespacesAreThoseOfTheTarget(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.Namespaces = reconcile.Namespaces{Map: map[string]string{"demo": "tenant"}, Allowed: []string{"demo"}}
	w.mustReconcile(t)
	w.checkReason(t, application.ReadyCondition, "Refused")
	w.checkObjects(t, 0)
}
