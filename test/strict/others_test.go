package strict

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/kit"
)

const othersManifest = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NAME}
webhooks:
- name: a.NAME.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{apiGroups: [NAME.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothing]}]
  clientConfig: {caBundle: Cg==, service: {name: a, namespace: NAME}}
- name: b.NAME.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{apiGroups: [NAME.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothing]}]
  clientConfig: {service: {name: a, namespace: NAME}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME-all}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {NAME: part}}]}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME-part, labels: {NAME: part}}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: own}
secrets: [{name: own-token}]
`

// What other controllers are meant to write stays, and is no drift: the certificate authority of a webhook, with a
// placeholder in the manifest or without, the rules of an aggregated ClusterRole, and the Secrets of a ServiceAccount. Another field
// beside it is repaired.
func TestWhatOthersWriteStays(t *testing.T) {
	w := wide
	namespace := w.namespace(t)
	w.grantAccount(t, namespace)
	w.apply(t, namespace, "app", strings.ReplaceAll(othersManifest, "NAME", namespace))
	w.reconciled(t, namespace, "app")

	configurations := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	authority, _ := kit.Field(w.Get(t, kit.ConfigMaps, "default", "kube-root-ca.crt"), "data", "ca.crt").(string)
	bundle := base64.StdEncoding.EncodeToString([]byte(authority))
	inject := func(path string) string { return `{"op": "add", "path": "` + path + `", "value": "` + bundle + `"}` }
	w.patch(t, configurations, "", namespace, "["+inject("/webhooks/0/clientConfig/caBundle")+","+inject("/webhooks/1/clientConfig/caBundle")+"]")
	w.patch(t, accounts, namespace, "own", `[{"op": "add", "path": "/secrets/-", "value": {"name": "another"}}]`)
	w.EventuallyField(t, "get", kit.ClusterRoles, "", namespace+"-all", "rules", 0, "verbs", 0)
	w.Mark(t).Calm(t, 3*time.Second, byAgent, isWork)
	w.EventuallyField(t, bundle, configurations, "", namespace, "webhooks", 0, "clientConfig", "caBundle")
	w.EventuallyField(t, bundle, configurations, "", namespace, "webhooks", 1, "clientConfig", "caBundle")
	w.EventuallyField(t, "another", accounts, namespace, "own", "secrets", 1, "name")

	w.patch(t, configurations, "", namespace, `[{"op": "add", "path": "/webhooks/0/failurePolicy", "value": "Ignore"},
		{"op": "replace", "path": "/webhooks/0/clientConfig/service/name", "value": "thief"}]`)
	w.EventuallyField(t, "a", configurations, "", namespace, "webhooks", 0, "clientConfig", "service", "name")
	w.EventuallyField(t, bundle, configurations, "", namespace, "webhooks", 0, "clientConfig", "caBundle")
	w.reconciled(t, namespace, "app")
	w.gone(t, namespace, "app")
}

// patch applies a JSON Patch as another client.
func (w *world) patch(t *testing.T, resource schema.GroupVersionResource, namespace, name, patch string) {
	t.Helper()
	client := w.Dynamic.Resource(resource).Namespace(namespace)
	kit.Must(t, kit.ErrorOf(client.Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})))
}
