package policies

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/kit"
)

// identity is a user or a ServiceAccount.
type identity struct {
	name   string
	groups []string
	// the namespace of a ServiceAccount
	namespace string
	// the user that a ServiceAccount impersonates, or empty
	as string
}

var (
	administrator = identity{name: "anna", groups: []string{"system:masters"}}
	// configMapEditor may do everything with ConfigMaps, and nothing else.
	configMapEditor = identity{name: "carl"}
	// namespaceEditor has the ClusterRole edit.
	namespaceEditor = identity{name: "edith"}
	// namespaceAdmin has the ClusterRole admin.
	namespaceAdmin = identity{name: "adam"}
	// namesake has the name of an agent without its group, as a client that
	// impersonates the name.
	namesake = identity{name: "system:serviceaccount:krake-agents:local", groups: []string{"system:masters"}}
	// impostor has the agents' group without the name of a ServiceAccount.
	impostor = identity{name: "ivan", groups: []string{"system:serviceaccounts:krake-agents"}}
)

// agent is the ServiceAccount of a cluster's agent.
func agent(cluster string) identity { return identity{name: cluster, namespace: "krake-agents"} }

// clients are the clients of one identity, and the warnings in the answers to them.
type clients struct {
	kubernetes.Interface

	dynamic dynamic.Interface
	said    *warnings
}

// warnings collects the warnings of the API server.
type warnings struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// take returns the warnings since the last call.
func (w *warnings) take() string {
	defer func() { w.texts = nil }()
	return strings.Join(w.texts, "\n")
}

// known has the clients of each identity: for a ServiceAccount the API server signs a token, and checks it.
var known = map[string]clients{}

// client returns the clients of the identity.
func (i identity) client(ctx context.Context) (clients, error) {
	key := fmt.Sprint(i)
	if found, ok := known[key]; ok {
		return found, nil
	}
	config, err := i.config(ctx)
	if err != nil {
		return clients{}, err
	}
	made := clients{said: &warnings{}}
	config.WarningHandler = made.said
	if made.Interface, err = kubernetes.NewForConfig(config); err != nil {
		return clients{}, err
	}
	if made.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return clients{}, err
	}
	known[key] = made
	return made, nil
}

// config returns the configuration of the identity: the administrator impersonates
// users, and a ServiceAccount has a token.
func (i identity) config(ctx context.Context) (*rest.Config, error) {
	config := server.RESTConfig()
	if i.namespace == "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: i.name, Groups: append([]string{"system:authenticated"}, i.groups...)}
		return config, nil
	}
	accounts := server.CoreV1().ServiceAccounts(i.namespace)
	token, err := accounts.CreateToken(ctx, i.name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create a token of %s/%s: %w", i.namespace, i.name, err)
	}
	config = rest.AnonymousClientConfig(config)
	config.QPS, config.BearerToken = -1, token.Status.Token
	config.Impersonate.UserName = i.as
	return config, nil
}

func (i identity) mustClient(t *testing.T) clients {
	t.Helper()
	client, err := i.client(t.Context())
	kit.Must(t, err)
	return client
}

// grant grants all identities the rights that the policies confine, so that only a
// policy can refuse: all verbs on ConfigMaps and Leases, and for the controller of Habitats on the kinds that
// its policies confine. One agent has objects of other Applications here,
// one has a name that begins like the first agent's, and one has its objects on another cluster.
func grant(ctx context.Context) error {
	return apply(ctx, `
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: krake-agents, name: other}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: krake-agents, name: loc}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: krake-agents, name: far}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-configmaps}
rules:
- apiGroups: ["", coordination.k8s.io]
  resources: [configmaps, leases]
  verbs: [get, list, create, update, patch, delete, deletecollection]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-own}
rules: [{apiGroups: [krake.dev], resources: [objects], verbs: [own]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-configmaps}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: test-configmaps}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:krake-agents"}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: carl}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-own}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: test-own}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: ivan}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:serviceaccount:krake-agents:other"}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:serviceaccount:krake-agents:loc"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-habitat}
rules:
- apiGroups: ["", apps, apiextensions.k8s.io]
  resources: [configmaps, deployments, statefulsets, pods, customresourcedefinitions]
  verbs: [get, list, create, update, patch, delete, deletecollection]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-habitat}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: test-habitat}
subjects: [{kind: ServiceAccount, namespace: krake-system, name: krake-habitat}]
`)
}

// apply applies documents as the administrator.
func apply(ctx context.Context, documents string) error {
	for text := range strings.SplitSeq(documents, "\n---\n") {
		if _, err := put(ctx, &unstructured.Unstructured{Object: mustRead(text)}, ""); err != nil {
			return err
		}
	}
	return nil
}

// put applies an object as kubectl apply --server-side --validate=strict does, and returns the warnings.
func put(ctx context.Context, object *unstructured.Unstructured, namespace string, dryRun ...string) (warned string, err error) {
	resource, _, err := server.Locate(object, namespace)
	if err != nil {
		return "", err
	}
	as, err := administrator.client(ctx)
	if err != nil {
		return "", err
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return "", err
	}
	as.said.take()
	options := metav1.PatchOptions{FieldManager: "test", Force: new(true), FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun}
	client := as.dynamic.Resource(object.GroupVersionKind().GroupVersion().WithResource(resource)).Namespace(object.GetNamespace())
	if _, err := client.Patch(ctx, object.GetName(), types.ApplyPatchType, text, options); err != nil {
		return "", fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return as.said.take(), nil
}

// newNamespace creates a namespace in which edith may edit and adam is admin.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := kit.UniqueName("policies")
	server.CreateNamespace(t, name)
	for role, who := range map[string]identity{"edit": namespaceEditor, "admin": namespaceAdmin} {
		bindIn(t, name, "ClusterRole", role, who.subject())
		await(t, who, "update", "", "configmaps", name)
	}
	return name
}

// bindIn binds a role in a namespace.
func bindIn(t *testing.T, namespace, kind, role string, subject rbacv1.Subject) {
	t.Helper()
	_, err := server.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}, metav1.CreateOptions{})
	kit.Must(t, err)
}

// subject returns the RBAC subject of the user.
func (i identity) subject() rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: i.name}
}

// await waits until RBAC, which takes effect after a moment, grants an identity a
// right.
func await(t *testing.T, who identity, verb, group, resource, namespace string) {
	t.Helper()
	kit.EventuallyTrue(t, who.name+" may not yet "+verb+" "+resource, func() bool { return may(t, who, verb, group, resource, namespace) })
}

// may reports whether an identity has a right.
func may(t *testing.T, who identity, verb, group, resource, namespace string) bool {
	t.Helper()
	answer, err := server.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: who.name, Groups: who.groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Namespace: namespace,
		}},
	}, metav1.CreateOptions{})
	kit.Must(t, err)
	return answer.Status.Allowed
}

// edit changes a ConfigMap.
type edit func(cm *corev1.ConfigMap)

// plain is a ConfigMap with only a name.
func plain(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// with returns the ConfigMap after the changes.
func with(cm *corev1.ConfigMap, edits ...edit) *corev1.ConfigMap {
	for _, change := range edits {
		change(cm)
	}
	return cm
}

// create creates a ConfigMap, and fails the test if it cannot.
func create(t *testing.T, who identity, cm *corev1.ConfigMap, edits ...edit) *corev1.ConfigMap {
	t.Helper()
	created, err := who.mustClient(t).CoreV1().ConfigMaps(cm.Namespace).Create(t.Context(), with(cm, edits...), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("%s creates %s: %v", who.name, cm.Name, err)
	}
	return created
}

// update changes a ConfigMap.
func update(t *testing.T, who identity, cm *corev1.ConfigMap, edits ...edit) (*corev1.ConfigMap, error) {
	t.Helper()
	cm = with(cm.DeepCopy(), edits...)
	return who.mustClient(t).CoreV1().ConfigMaps(cm.Namespace).Update(t.Context(), cm, metav1.UpdateOptions{})
}

// tryUpdate updates a ConfigMap as a dry run.
func tryUpdate(t *testing.T, who identity, cm *corev1.ConfigMap) error {
	t.Helper()
	return kit.ErrorOf(who.mustClient(t).CoreV1().ConfigMaps(cm.Namespace).Update(t.Context(), cm, metav1.UpdateOptions{DryRun: dry}))
}

func mustUpdate(t *testing.T, who identity, cm *corev1.ConfigMap, edits ...edit) *corev1.ConfigMap {
	t.Helper()
	updated, err := update(t, who, cm, edits...)
	if err != nil {
		t.Fatalf("%s updates %s: %v", who.name, cm.Name, err)
	}
	return updated
}

// remove deletes a ConfigMap, and returns its state with a finalizer.
func remove(t *testing.T, cm *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	configMaps := server.CoreV1().ConfigMaps(cm.Namespace)
	kit.Must(t, configMaps.Delete(t.Context(), cm.Name, metav1.DeleteOptions{}))
	remaining, err := configMaps.Get(t.Context(), cm.Name, metav1.GetOptions{})
	kit.Must(t, err)
	return remaining
}

// verdict returns the message of a policy, or the empty string. Any other error fails
// the test as an unexpected message.
func verdict(err error) string {
	if err == nil {
		return ""
	}
	_, message, denied := strings.Cut(err.Error(), " denied request: ")
	if !denied {
		return "no policy, but: " + err.Error()
	}
	return message
}
