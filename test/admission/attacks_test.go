package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// These attacks use the metadata of an Application, and unusual kinds of requests.
func TestOddRequests(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	service := kinds()[2].object("", "web", "2")
	raw := func(u user, verb, path, body string) error {
		client := u.client(t).CoreV1().RESTClient()
		request := client.Verb(verb).AbsPath("/api/v1/namespaces/" + namespace + "/" + path)
		if body != "" {
			request = request.SetHeader("Content-Type", "application/json").Body([]byte(body))
		}
		return request.Do(t.Context()).Error()
	}
	brought := func(with func(*corev1.ConfigMap)) *corev1.ConfigMap {
		app := withManifest(namespace, "new", service)
		with(app)
		return app
	}
	now := metav1.Now()
	cases := []struct {
		name string
		try  func() error
		want verdict
	}{
		{"a deletionTimestamp in a new one", func() error {
			return create(t, low, brought(func(cm *corev1.ConfigMap) { cm.DeletionTimestamp = &now }))
		}, noRights},
		{"a deletionTimestamp with another spec", func() error {
			return change(t, low, namespace, "web", func(cm *corev1.ConfigMap) {
				cm.Data[application.ManifestKey], cm.DeletionTimestamp = service, &now
			})
		}, noRights},
		{"a uid and a creationTimestamp", func() error {
			return create(t, low, brought(func(cm *corev1.ConfigMap) { cm.UID, cm.CreationTimestamp = "x", now }))
		}, noRights},
		{"immutable", func() error {
			return create(t, editor, brought(func(cm *corev1.ConfigMap) { cm.Immutable = new(true) }))
		}, invalidText},
		{"immutable, later", func() error { return patch(t, low, namespace, "web", `{"immutable": true}`) }, noRights},
		{"generateName", func() error {
			return create(t, editor, brought(func(cm *corev1.ConfigMap) { cm.Name, cm.GenerateName = "", "new-" }))
		}, invalidText},
		{"the spec in binary", func() error {
			return patch(t, editor, namespace, "web", `{"data": {"spec.manifest": null}, "binaryData": {"spec.manifest": "W10="}}`)
		}, invalidText},
		{"no spec", func() error { return patch(t, editor, namespace, "web", `{"data": null}`) }, invalidText},
		{"a key of the spec that nobody knows", func() error { return patch(t, editor, namespace, "web", `{"data": {"spec.x": "1"}}`) }, invalidText},
		{"an annotation of ours that nobody knows", func() error {
			return patch(t, editor, namespace, "web", `{"metadata": {"annotations": {"krake.dev/owner": "x"}}}`)
		}, invalidText},
		{"another spec by a JSON patch", func() error {
			return try(t, low, types.JSONPatchType, namespace, "web", fmt.Sprintf(`[{"op": "replace", "path": "/data/spec.manifest", "value": %q}]`, service))
		}, noRights},
		{"another spec by a strategic merge patch", func() error {
			return try(t, low, types.StrategicMergePatchType, namespace, "web", manifestPatch(service))
		}, noRights},
		{"another spec by server-side apply", func() error {
			return try(t, low, types.ApplyPatchType, namespace, "web", kit.YAML(t, withManifest(namespace, "web", service)))
		}, noRights},
		{"a new one by server-side apply", func() error {
			return try(t, low, types.ApplyPatchType, namespace, "new", kit.YAML(t, withManifest(namespace, "new", service)))
		}, noRights},
		{"another spec and the annotation away and back", func() error {
			return try(t, low, types.JSONPatchType, namespace, "web", fmt.Sprintf(`[{"op": "remove", "path": "/metadata/annotations"},
				{"op": "replace", "path": "/data/spec.manifest", "value": %q},
				{"op": "add", "path": "/metadata/annotations", "value": {"krake.dev/application": "v1"}}]`, service))
		}, noRights},
		{"a deletion", func() error { return raw(low, "DELETE", "configmaps/web", "") }, deniedByPolicy},
		{"a deletion that orphans", func() error {
			return raw(low, "DELETE", "configmaps/web", `{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan", "gracePeriodSeconds": 0}`)
		}, deniedByPolicy},
		{"the finalizer away", func() error {
			return patch(t, low, namespace, "web", `{"metadata": {"finalizers": null, "annotations": {"krake.dev/force-delete": "true"}}}`)
		}, deniedByPolicy},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { judge(t, "it is tried", c.want, c.try()) })
	}
	for _, c := range []struct{ verb, path string }{
		{"PUT", "configmaps/absent"}, {"PATCH", "configmaps/web/status"}, {"PUT", "configmaps/web/status"}, {"PUT", "configmaps/web/scale"},
		{"POST", "configmaps/web/eviction"}, {"POST", "configmaps/web/binding"}, {"POST", "configmaps/web"},
	} {
		body := kit.YAML(t, withManifest(namespace, "web", service))
		if err := raw(root, c.verb, c.path, body); err == nil {
			t.Errorf("%s %s was accepted", c.verb, c.path)
		}
	}
	cm := get(t, namespace, "web")
	if !strings.Contains(cm.Data[application.ManifestKey], "port: 80") || len(cm.Finalizers) != 1 || get(t, namespace, "new") != nil {
		t.Errorf("it was changed: %v", cm)
	}
	mustHeal(t, namespace, "web")
}

// The rights are checked as RBAC defines them: for these groups, this API group, and
// all objects of a kind.
func TestRightsAreThoseOfTheUser(t *testing.T) {
	namespace := newNamespace(t)
	hub.Make(t, "", stage+"---"+kit.Definition("stage.example.com", "ConfigMap", anything))
	config := kinds()[0].object("", "new", "1")
	grant(t, "named", namespace, everyConfigMap(),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, ResourceNames: []string{"new"}, Verbs: []string{"patch", "delete"}})
	grant(t, "status", namespace, everyConfigMap(),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services/status"}, Verbs: []string{"*"}})
	grant(t, "member", namespace, everyConfigMap())
	bindTo(t, "group", namespace, "ClusterRole", "edit", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "builders"})
	kit.EventuallyNil(t, func() error { // the API server must see the bindings first
		return createAs(t, namespace, rest.ImpersonationConfig{UserName: "member", Groups: []string{"builders"}}, config)
	})
	service := kinds()[2].object("", "new", "1")
	for _, c := range []struct {
		name   string
		as     rest.ImpersonationConfig
		object string
		want   verdict
	}{
		{"by a group", rest.ImpersonationConfig{UserName: "member", Groups: []string{"builders"}}, service, admitted},
		{"the same user without the group", rest.ImpersonationConfig{UserName: "member"}, service, noRights},
		{"the same user with another group", rest.ImpersonationConfig{UserName: "member", Groups: []string{"others"}}, service, noRights},
		{"the same user with the group as extra", rest.ImpersonationConfig{UserName: "member", Extra: map[string][]string{"groups": {"builders"}}}, service, noRights},
		{"a right that is limited to the name", rest.ImpersonationConfig{UserName: "named"}, service, noRights},
		{"a right on a subresource", rest.ImpersonationConfig{UserName: "status"}, service, noRights},
		{"a right on the same word in another API group, which the hub knows", rest.ImpersonationConfig{UserName: "low"}, strings.Replace(config, "apiVersion: v1", "apiVersion: stage.example.com/v1", 1), noRights},
		{"a right on the same word in another API group, which nobody knows", rest.ImpersonationConfig{UserName: "low"}, strings.Replace(config, "apiVersion: v1", "apiVersion: no.example.com/v1", 1), noRights},
		{"the group of the agents, and no agent", rest.ImpersonationConfig{UserName: "low", Groups: []string{"system:serviceaccounts:krake-agents"}}, config, deniedByPolicy},
		{"the name of an agent, without the group", rest.ImpersonationConfig{UserName: string(agent), Groups: []string{"builders"}}, config, invalidText},
	} {
		t.Run(c.name, func(t *testing.T) { judge(t, "it is created", c.want, createAs(t, namespace, c.as, c.object)) })
	}
}

// createAs creates an Application as a user with groups, as a dry run.
func createAs(t *testing.T, namespace string, as rest.ImpersonationConfig, object string) error {
	t.Helper()
	return kit.ErrorOf(clientAs(t, as).CoreV1().ConfigMaps(namespace).Create(t.Context(), withManifest(namespace, "app", object), dryRun))
}

// An Application whose manifest has an Application, itself or another one, harms
// neither.
func TestAnApplicationThatAsksForOne(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	before := get(t, namespace, "web")
	judge(t, "an Application has itself", invalidText, create(t, low, withManifest(namespace, "self", kinds()[0].object("", "self", "1"))))
	kit.Must(t, create(t, low, withManifest(namespace, "thief", kinds()[0].object("", "web", "1"))))
	eventuallyState(t, application.StateFailed, namespace, "thief")
	kit.Must(t, admin.client(t).CoreV1().ConfigMaps(namespace).Delete(t.Context(), "thief", metav1.DeleteOptions{}))
	hub.EventuallyGone(t, kit.ConfigMaps, namespace, "thief")
	mustHeal(t, namespace, "web")
	if after := get(t, namespace, "web"); after.UID != before.UID || after.Data[application.ManifestKey] != before.Data[application.ManifestKey] {
		t.Errorf("it was changed: %v", after)
	}
	// A ConfigMap that an agent made does not become an Application.
	kit.Must(t, create(t, low, withManifest(namespace, "maker", kinds()[0].object("", "made", "1"))))
	eventuallyState(t, application.StateRunning, namespace, "maker")
	judge(t, "a ConfigMap of an Application becomes one", invalidText,
		patch(t, low, namespace, "made", `{"metadata": {"annotations": {"krake.dev/application": "v1"}}, "data": {"spec.manifest": "[]"}}`))
	// Nor does the label of a holder make a plain ConfigMap an Application.
	plain := newApplication(namespace, "plain")
	plain.Annotations, plain.Labels = nil, map[string]string{application.HolderLabel("local"): "true"}
	kit.Must(t, create(t, low, plain))
	mustHeal(t, namespace, "web")
	if service(t, namespace, "plain") != nil || len(get(t, namespace, "plain").Finalizers) > 0 {
		t.Error("a plain ConfigMap was carried out")
	}
}

// absentOwner makes the garbage collector delete an object.
const absentOwner = `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": "00000000-0000-0000-0000-000000000000"}]}}`

// A user who may write ConfigMaps, but not delete Applications, cannot make the garbage
// collector delete one.
func TestTheGarbageCollectorIsNobodysDeputy(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	kit.Must(t, createPlain(t, root, namespace))
	judge(t, "low adds an owner to an Application", deniedByPolicy, patch(t, low, namespace, "web", absentOwner))
	kit.Must(t, patch(t, low, namespace, "plain", absentOwner))
	hub.EventuallyGone(t, kit.ConfigMaps, namespace, "plain") // by the garbage collector
	if cm := get(t, namespace, "web"); cm == nil || !cm.DeletionTimestamp.IsZero() || service(t, namespace, "web") == nil {
		t.Error("the garbage collector has deleted the Application for somebody who may not")
	}
}

// A kind can be written in several ways.
func TestASecretByAnotherWord(t *testing.T) {
	namespace := newNamespace(t)
	for _, apiVersion := range []string{"v1", "/v1", `"/v1"`, `"v1 "`, `"core/v1"`} {
		text := "{apiVersion: " + apiVersion + ", kind: Secret, metadata: {name: a}, stringData: {password: x}}"
		if v := verdictOf(create(t, editor, withManifest(namespace, "secret", text))); v == admitted {
			t.Errorf("a Secret of apiVersion %s was admitted with its value", apiVersion)
			if err := hub.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "secret", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
	}
}

// An agent with rights on RBAC kinds does not lend these rights. The API server lets
// the writer of a RoleBinding grant the writer's own rights, and the writer would be
// the agent.
func TestTheAgentLendsNoRights(t *testing.T) {
	namespace := newNamespace(t)
	const name = "test-roles-for-the-agent"
	roleBindings := rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: allVerbs()}
	_, err := hub.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"krake.dev/aggregate-to-agent": "true"}}, Rules: []rbacv1.PolicyRule{roleBindings},
	}, metav1.CreateOptions{})
	kit.Must(t, err)
	t.Cleanup(func() {
		kit.Must(t, hub.RbacV1().ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{}))
	})
	const binder user = "binder" // may bind only their own few rights
	grant(t, binder, namespace, everyConfigMap(), roleBindings)
	kit.EventuallyTrue(t, "the API server does not know the roles", func() bool {
		return agent.may(t, "create", "rolebindings.rbac.authorization.k8s.io", namespace) && binder.may(t, "create", "configmaps", namespace)
	})
	lend := "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: lent}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: krake-workloads}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: binder}]}"
	byHand, err := yaml.YAMLToJSON([]byte(lend))
	kit.Must(t, err)
	err = kit.Send(t, binder.client(t), "POST /apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/rolebindings", string(byHand))()
	if err == nil || !strings.Contains(err.Error(), "attempting to grant RBAC permissions not currently held") {
		t.Fatalf("by hand: %v", err)
	}
	v := verdictOf(create(t, binder, withManifest(namespace, "lend", lend)))
	t.Logf("by an Application: %s", v)
	if v != admitted {
		return
	}
	kit.EventuallyTrue(t, "there is no status", func() bool { return get(t, namespace, "lend").Data[application.StatusKey] != "" })
	if binder.may(t, "create", "deployments.apps", namespace) {
		t.Error("the agent has lent its rights to a user who has none of them")
	}
}
