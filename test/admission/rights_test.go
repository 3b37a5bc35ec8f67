package admission

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// These users exist in addition to those of [newNamespace]: see [bindMore].
const (
	deployer  user = "deployer"  // may write ConfigMaps and Deployments, but no Services
	guesser   user = "guesser"   // may write ConfigMaps, and widgets.far.example.com, which the hub does not know
	neighbour user = "neighbour" // has edit in the other namespace
	nobody    user = "nobody"
	agent     user = "system:serviceaccount:krake-agents:local"
)

// allVerbs returns the verbs that write and read objects.
func allVerbs() []string {
	return []string{"create", "get", "list", "watch", "update", "patch", "delete"}
}

// everyConfigMap is the right to all verbs on ConfigMaps.
func everyConfigMap() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: allVerbs()}
}

// bindMore binds the roles of the users that only tests of authority have.
func bindMore(t *testing.T, namespace, other string) {
	t.Helper()
	grant(t, deployer, namespace, everyConfigMap(),
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: allVerbs()})
	grant(t, guesser, namespace, everyConfigMap(),
		rbacv1.PolicyRule{APIGroups: []string{"far.example.com"}, Resources: []string{"widgets"}, Verbs: allVerbs()})
	bind(t, neighbour, other, "ClusterRole", "edit")
	kit.EventuallyTrue(t, "the API server does not know the bindings", func() bool {
		return neighbour.may(t, "create", "services", other) && guesser.may(t, "create", "configmaps", namespace)
	})
}

// grant creates a role with the user's name and these rules, and binds it.
func grant(t *testing.T, u user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: string(u)}, Rules: rules}
	kit.Must(t, kit.ErrorOf(hub.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{})))
	bind(t, u, namespace, "Role", string(u))
}

func bind(t *testing.T, u user, namespace, kind, role string) {
	t.Helper()
	bindTo(t, string(u)+"-"+role, namespace, kind, role, u.subject())
}

func bindTo(t *testing.T, name, namespace, kind, role string, subject rbacv1.Subject) {
	t.Helper()
	_, err := hub.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}, metav1.CreateOptions{})
	kit.Must(t, err)
}

// kind is a kind of object that a manifest may have.
type kind struct {
	column     string // in the table, as kubectl abbreviates it
	resource   string // with its group, as in the API
	apiVersion string
	kind       string
	rest       string // of the object, in YAML's flow style, with a leading comma
	refused    bool   // in every Application: its reach is too wide
}

const pods = `selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}`

// kinds returns the columns of the table.
func kinds() []kind {
	return []kind{
		{"cm", "configmaps", "v1", "ConfigMap", `, data: {a: "1"}`, false},
		{"deploy", "deployments.apps", "apps/v1", "Deployment", `, spec: {replicas: 0, ` + pods + `}`, false},
		{"svc", "services", "v1", "Service", `, spec: {ports: [{port: 80}]}`, false},
		{"sts", "statefulsets.apps", "apps/v1", "StatefulSet", `, spec: {replicas: 0, serviceName: a, ` + pods + `}`, false},
		{
			"cj", "cronjobs.batch", "batch/v1", "CronJob",
			`, spec: {suspend: true, schedule: "0 0 * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}`, false,
		},
		{"secret", "secrets", "v1", "Secret", ``, false},
		{"sa", "serviceaccounts", "v1", "ServiceAccount", ``, false},
		{"role", "roles.rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1", "Role", `, rules: []`, true},
		{
			"rb", "rolebindings.rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1", "RoleBinding",
			`, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: []`, true,
		},
		{"netpol", "networkpolicies.networking.k8s.io", "networking.k8s.io/v1", "NetworkPolicy", `, spec: {podSelector: {matchLabels: {app: a}}}`, false},
		{
			"hpa", "horizontalpodautoscalers.autoscaling", "autoscaling/v2", "HorizontalPodAutoscaler",
			`, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: elsewhere}}`, false,
		},
		{"song", "songs.stage.example.com", "stage.example.com/v1", "Song", `, spec: {key: a}`, false},
		{"widget", "widgets.far.example.com", "far.example.com/v1", "Widget", `, spec: {key: a}`, false},
		{"theater", "theaters.stage.example.com", "stage.example.com/v1", "Theater", `, spec: {key: a}`, true},
		{"crole", "clusterroles.rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1", "ClusterRole", `, rules: []`, true},
		{"ns", "namespaces", "v1", "Namespace", ``, true},
	}
}

// resourceOf returns the resource of the kind.
func (k kind) resourceOf() schema.GroupVersionResource {
	resource, _, _ := strings.Cut(k.resource, ".")
	return schema.FromAPIVersionAndKind(k.apiVersion, "").GroupVersion().WithResource(resource)
}

// object returns an object of the kind as in a manifest; the namespace may be empty.
func (k kind) object(namespace, name, revision string) string {
	if namespace != "" {
		namespace = ", namespace: " + namespace
	}
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s%s, labels: {revision: %q}}%s}\n",
		k.apiVersion, k.kind, name, namespace, revision, k.rest)
}

// anything is a schema that allows every field.
const anything = "{type: object, x-kubernetes-preserve-unknown-fields: true}"

// stage defines two kinds for the hub: one is namespaced, the other is not.
var stage = kit.Definition("stage.example.com", "Song", anything) + `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: theaters.stage.example.com}
spec:
  group: stage.example.com
  scope: Cluster
  names: {kind: Theater, plural: theaters, singular: theater}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// withManifest returns an Application whose manifest has these objects.
func withManifest(namespace, name string, objects ...string) *corev1.ConfigMap {
	app := newApplication(namespace, name)
	app.Data[application.ManifestKey] = strings.Join(objects, "---\n")
	return app
}

// manifestPatch returns a merge patch that replaces the manifest.
func manifestPatch(objects ...string) string {
	text, err := json.Marshal(map[string]any{"data": map[string]string{application.ManifestKey: strings.Join(objects, "---\n")}})
	if err != nil {
		panic(err) // strings can be encoded
	}
	return string(text)
}

// judge fails unless the verdict on a request is the wanted one.
func judge(t *testing.T, what string, want verdict, err error) {
	t.Helper()
	if v := verdictOf(err); v != want {
		t.Errorf("%s: %s, want %s", what, v, want)
	}
}

// verdict is the outcome of a request, with the component that decided.
type verdict string

const (
	admitted       verdict = "A"
	noConfigMaps   verdict = "F" // the API server: the user may not write ConfigMaps
	noRights       verdict = "R" // the webhook: the user lacks the rights that the Application needs
	confined       verdict = "C" // the webhook: no Application may do it
	deniedByPolicy verdict = "P"
	invalidText    verdict = "I" // the webhook: invalid for another reason
	notACell       verdict = "."
)

// verdictOf returns the component that refused, from the message. Other messages are
// returned unchanged.
func verdictOf(err error) verdict {
	text := errorText(err)
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case err == nil:
		return admitted
	case apierrors.IsForbidden(err) && has("an Application does nothing that its user may not do"):
		return noRights
	case apierrors.IsForbidden(err) && has("ValidatingAdmissionPolicy 'krake-"):
		return deniedByPolicy
	case apierrors.IsForbidden(err) && has("cannot") && has(`resource "configmaps" in API group ""`):
		return noConfigMaps
	case apierrors.IsInvalid(err) && (has("an Application creates objects in its own namespace only") || has("grants its own rights")):
		return confined
	case apierrors.IsInvalid(err):
		return invalidText
	}
	return verdict(text)
}

// try patches a ConfigMap as a user, by any kind of patch.
func try(t *testing.T, as user, how types.PatchType, namespace, name, patch string) error {
	t.Helper()
	options := metav1.PatchOptions{}
	if how == types.ApplyPatchType {
		options.FieldManager = string(as)
		options.Force = new(true)
	}
	return kit.ErrorOf(as.client(t).CoreV1().ConfigMaps(namespace).Patch(t.Context(), name, how, []byte(patch), options))
}
