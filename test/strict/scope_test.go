package strict

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/test/kit"
)

// everywhere is a cluster-scoped object, and an object in another namespace.
const everywhere = `
apiVersion: v1
kind: Namespace
metadata: {name: NAME-made}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: NAME-made}
data: {color: red}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.NAME.example.com}
spec:
  group: NAME.example.com
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME-reader, namespace: NAME}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
`

// With --scope=cluster an Application has cluster-scoped objects, and objects in other
// namespaces, if its account has the rights. The namespace that the manifest has for a
// cluster-scoped kind is ignored: the object is created and repaired where it belongs,
// and then nothing is written.
func TestClusterScope(t *testing.T) {
	w := wide
	begin := w.Mark(t)
	namespace := w.namespace(t)
	manifest := strings.ReplaceAll(everywhere, "NAME", namespace)
	w.account(t, namespace, "krake-deployer", "admin")
	w.apply(t, namespace, "app", manifest)
	w.says(t, namespace, "app", "Forbidden", "4 of 4 objects")
	forbidden := map[string]string{}
	for _, object := range w.App(namespace, "app").Read(t).Status.Objects {
		forbidden[object.Name] = object.Reason + ": " + object.Message
	}
	for name, resource := range map[string]string{
		namespace + "-made": "namespaces", "settings": "configmaps",
		"gadgets." + namespace + ".example.com": "customresourcedefinitions", namespace + "-reader": "clusterroles",
	} {
		if text := forbidden[name]; !strings.Contains(text, "Forbidden") || !strings.Contains(text, resource) {
			t.Errorf("the status says %q of object %s", text, name)
		}
	}
	for _, object := range []struct{ what, name string }{
		{"namespace", namespace + "-made"}, {"crd", "gadgets." + namespace + ".example.com"}, {"clusterrole", namespace + "-reader"},
	} {
		if text := w.Kubectl(t, "get", object.what, object.name, "--ignore-not-found", "-o", "name"); text != "" {
			t.Errorf("there is %s", text)
		}
	}

	w.Kubectl(t, "create", "clusterrole", namespace, "--verb=create,patch,delete,get",
		"--resource=namespaces,configmaps,customresourcedefinitions.apiextensions.k8s.io,clusterroles.rbac.authorization.k8s.io")
	w.Kubectl(t, "create", "clusterrolebinding", namespace, "--clusterrole", namespace, "--serviceaccount", namespace+":krake-deployer")
	t.Cleanup(func() { w.Kubectl(t, "delete", "clusterrole,clusterrolebinding", namespace) })
	w.reconciled(t, namespace, "app")
	w.Change(t, kit.ConfigMaps, namespace+"-made", "settings", `{"data": {"color": "blue"}}`)
	w.EventuallyField(t, "red", kit.ConfigMaps, namespace+"-made", "settings", "data", "color")
	w.Change(t, kit.ClusterRoles, "", namespace+"-reader", `{"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]}`)
	w.EventuallyField(t, "get", kit.ClusterRoles, "", namespace+"-reader", "rules", 0, "verbs", 0)
	w.Mark(t).Calm(t, 3*time.Second, byAgent, isWork)

	w.Kubectl(t, "--namespace", namespace, "delete", "configmap", "app", "--timeout", kit.Timeout.String())
	w.EventuallyGone(t, kit.Namespaces, "", namespace+"-made")
	if left := w.Kubectl(t, "get", "crd", "gadgets."+namespace+".example.com", "--output", "jsonpath={.metadata.annotations}"); strings.Contains(left, "krake.dev") {
		t.Errorf("the definition stays with our marks: %s", left)
	}
	w.Kubectl(t, "delete", "crd", "gadgets."+namespace+".example.com") // with it, all objects of the kind would have gone
	w.EventuallyGone(t, kit.ClusterRoles, "", namespace+"-reader")

	made := work(t, begin, "")
	checkAccount(t, made, namespace)
	t.Logf("%d writes to the target", len(made))
}

const ownKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.NAME.example.com}
spec:
  group: NAME.example.com
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME-gadgets, labels: {krake.dev/aggregate-to-agent: "true"}}
rules:
- apiGroups: [NAME.example.com]
  resources: [gadgets]
  verbs: [get, list, watch, "impersonate-on:serviceaccount:create", "impersonate-on:serviceaccount:patch", "impersonate-on:serviceaccount:delete"]
---
apiVersion: NAME.example.com/v1
kind: Gadget
metadata: {name: first}
spec: {size: 1}
`

// An Application brings a kind, the agent's rights on it, and an object of it. The API server grants the rights as far as the
// account has them: with fewer rights, the ClusterRole is refused, and the object is not created.
func TestAnApplicationBringsItsKind(t *testing.T) {
	w := wide
	gadgets := func(namespace string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: namespace + ".example.com", Version: "v1", Resource: "gadgets"}
	}
	for grant, mayAll := range map[string]bool{"cluster-admin": true, "admin": false} {
		t.Run(grant, func(t *testing.T) {
			begin, namespace := w.Mark(t), w.namespace(t)
			w.plugin(t, "account", "--namespace", namespace, "--grant", grant)
			definitions := kit.YAML(t, map[string]any{
				"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": namespace},
				"rules": []any{
					map[string]any{"apiGroups": []any{"apiextensions.k8s.io"}, "resources": []any{"customresourcedefinitions"}, "verbs": []any{"get", "create", "patch", "delete"}},
					map[string]any{"apiGroups": []any{"rbac.authorization.k8s.io"}, "resources": []any{"clusterroles"}, "verbs": []any{"get", "create", "patch", "delete"}},
				},
			})
			w.Apply(t, definitions)
			w.Kubectl(t, "create", "clusterrolebinding", namespace, "--clusterrole", namespace, "--serviceaccount", namespace+":krake-deployer")
			t.Cleanup(func() {
				w.Kubectl(t, "delete", "--ignore-not-found", "clusterrolebinding", namespace, namespace+"-krake-deployer-cluster-admin")
				w.Kubectl(t, "delete", "clusterrole", namespace)
			})
			w.apply(t, namespace, "app", strings.ReplaceAll(ownKind, "NAME", namespace), kit.Annotation("deletion-policy", "delete"))
			if mayAll {
				w.reconciled(t, namespace, "app")
				for _, write := range work(t, begin, "") {
					if write.Status.Code >= http.StatusBadRequest {
						t.Errorf("refused: %s", write)
					}
				}
				w.Change(t, gadgets(namespace), namespace, "first", `{"spec": {"size": 2}}`)
				w.EventuallyField(t, int64(1), gadgets(namespace), namespace, "first", "spec", "size")
			} else {
				w.says(t, namespace, "app", "Forbidden", "gadgets")
			}
			checkAccount(t, work(t, begin, ""), namespace)
			w.Kubectl(t, "--namespace", namespace, "delete", "configmap", "app", "--timeout", kit.Timeout.String())
			w.EventuallyGone(t, kit.Definitions, "", "gadgets."+namespace+".example.com")
		})
	}
}
