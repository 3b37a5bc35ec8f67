package strict

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/test/kit"
)

// everywhere is a cluster-scoped object, and an object in another namespace.
var everywhere = `
apiVersion: v1
kind: Namespace
metadata: {name: NAME-made}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: NAME-made}
data: {color: red}
---
` + kit.Definition("NAME.example.com", "Gadget", "{type: object}") + `---
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
	definition := "gadgets." + namespace + ".example.com"
	for name, resource := range map[string]schema.GroupVersionResource{namespace + "-made": kit.Namespaces, definition: kit.Definitions, namespace + "-reader": kit.ClusterRoles} {
		if w.Get(t, resource, "", name) != nil {
			t.Errorf("there is %s", name)
		}
	}

	w.mayDefine(t, namespace)
	w.reconciled(t, namespace, "app")
	w.Change(t, kit.ConfigMaps, namespace+"-made", "settings", `{"data": {"color": "blue"}}`)
	w.EventuallyField(t, "red", kit.ConfigMaps, namespace+"-made", "settings", "data", "color")
	w.Change(t, kit.ClusterRoles, "", namespace+"-reader", `{"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]}`)
	w.EventuallyField(t, "get", kit.ClusterRoles, "", namespace+"-reader", "rules", 0, "verbs", 0)
	w.Mark(t).Calm(t, 3*time.Second, byAgent, isWork)

	w.gone(t, namespace, "app")
	w.EventuallyGone(t, kit.Namespaces, "", namespace+"-made")
	if left := w.Get(t, kit.Definitions, "", definition); left == nil || strings.Contains(fmt.Sprint(left.GetAnnotations()), "krake.dev") {
		t.Errorf("the definition, with which all objects of the kind would have gone, is %v", left)
	}
	kit.Must(t, w.Dynamic.Resource(kit.Definitions).Delete(t.Context(), definition, metav1.DeleteOptions{}))
	w.EventuallyGone(t, kit.ClusterRoles, "", namespace+"-reader")

	made := work(t, begin, "")
	checkAccount(t, made, namespace)
	t.Logf("%d writes to the target", len(made))
}

// mayDefine grants rights to the account of a namespace: on namespaces, ConfigMaps, definitions and ClusterRoles.
func (w *world) mayDefine(t *testing.T, namespace string) {
	t.Helper()
	t.Cleanup(w.Make(t, "", strings.ReplaceAll(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME}
rules:
- apiGroups: ["", apiextensions.k8s.io, rbac.authorization.k8s.io]
  resources: [namespaces, configmaps, customresourcedefinitions, clusterroles]
  verbs: [create, patch, delete, get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAME}
subjects: [{kind: ServiceAccount, name: krake-deployer, namespace: NAME}]
`, "NAME", namespace)))
}

var ownKind = kit.Definition("NAME.example.com", "Gadget", "{type: object, x-kubernetes-preserve-unknown-fields: true}") + `---
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
			t.Cleanup(func() { w.revoke(t, namespace) })
			w.mayDefine(t, namespace)
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
			w.gone(t, namespace, "app")
			w.EventuallyGone(t, kit.Definitions, "", "gadgets."+namespace+".example.com")
		})
	}
}
