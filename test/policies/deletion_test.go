package policies

import (
	"context"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const agentsNever = "an agent does not delete Applications: have a user do it"

// mayNot is what somebody reads who may delete ConfigMaps only.
func mayNot(user, namespace string) string {
	return fmt.Sprintf("user %q may delete ConfigMaps, but no Applications in namespace %q: have the ClusterRole krake-application-delete bound", user, namespace)
}

// Whoever may edit ConfigMaps, and nothing else, takes no workload down: neither
// by the name, nor by a selector, nor with --all.
func TestDeletionNeedsTheRight(t *testing.T) {
	namespace := newNamespace(t)
	for _, who := range []identity{namespaceEditor, namespaceAdmin} {
		await(t, who, "delete", "krake.dev", "applications", namespace)
	}
	agents := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:krake-agents"}
	if err := bind(t.Context(), administrator.mustClient(t), "krake-application-delete", agents); err != nil {
		t.Fatal(err)
	}
	await(t, identity{name: "x", groups: []string{agents.Name}}, "delete", "krake.dev", "applications", namespace)

	for _, c := range []struct {
		who    identity
		stored state
		want   string
	}{
		{administrator, bare, allowed},
		{namespaceEditor, bare, allowed},
		{namespaceEditor, admitted, allowed},
		{namespaceAdmin, bare, allowed},
		{configMapEditor, bare, mayNot("carl", namespace)},
		{configMapEditor, moved, mayNot("carl", namespace)},
		{configMapEditor, deleted(moved), mayNot("carl", namespace)}, // asked again, as a force deletion does
		{agent("local"), moved, agentsNever},                         // although the role is bound
		{agent("local"), changed(bare, marked), agentsNever},
		{impostor, bare, agentsNever},
		{namesake, bare, agentsNever},
	} {
		t.Run(c.who.name, func(t *testing.T) {
			configMaps := c.who.mustClient(t).CoreV1().ConfigMaps(namespace)
			c.stored(t, namespace)
			expect(t, c.want, configMaps.Delete(t.Context(), "app", metav1.DeleteOptions{}))
			expectThere(t, namespace, c.want != allowed)
			letGo(t, namespace)

			c.stored(t, namespace)
			everything := metav1.ListOptions{FieldSelector: "metadata.name=app"}
			expect(t, c.want, configMaps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, everything))
			expectThere(t, namespace, c.want != allowed)
			letGo(t, namespace)
		})
	}
}

func expectThere(t *testing.T, namespace string, want bool) {
	t.Helper()
	cm, err := administrator.mustClient(t).CoreV1().ConfigMaps(namespace).Get(t.Context(), "app", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if there := err == nil; there != want {
		t.Errorf("the Application is there: %t, want %t (%v)", there, want, cm)
	}
}

// A right for one Application is one for this Application: the policy asks for
// the name.
func TestTheRightToDeleteOne(t *testing.T) {
	namespace := newNamespace(t)
	client := administrator.mustClient(t)
	_, err := client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"krake.dev"}, Resources: []string{"applications"}, Verbs: []string{"delete"}, ResourceNames: []string{"mine"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "one"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: configMapEditor.name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, administrator, plain(namespace, "mine"), annotated)
	create(t, administrator, plain(namespace, "theirs"), annotated)
	configMaps := configMapEditor.mustClient(t).CoreV1().ConfigMaps(namespace)
	err = wait(t.Context(), func() (bool, error) { // RBAC needs a moment
		return configMaps.Delete(t.Context(), "mine", metav1.DeleteOptions{}) == nil, nil
	})
	if err != nil {
		t.Errorf("wait until the Application can be deleted: %v", err)
	}
	expect(t, mayNot("carl", namespace), configMaps.Delete(t.Context(), "theirs", metav1.DeleteOptions{}))
}

// The controllers that delete what they do not know have the right by the roles
// that every cluster has.
func TestControllersMayDelete(t *testing.T) {
	client := administrator.mustClient(t)
	for _, controller := range []string{"namespace-controller", "generic-garbage-collector", "ttl-after-finished-controller"} {
		want := controller != "ttl-after-finished-controller" // one that may not, or the question would prove nothing
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   "system:serviceaccount:kube-system:" + controller,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: "delete", Group: "krake.dev", Resource: "applications", Namespace: "default", Name: "app",
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status.Allowed != want {
			t.Errorf("%s: allowed %t, want %t: %s", controller, answer.Status.Allowed, want, answer.Status.Reason)
		}
	}
}

// A namespace goes with the Applications in it.
func TestDeletionOfANamespace(t *testing.T) {
	namespace := newNamespace(t)
	admitted(t, namespace)
	create(t, administrator, plain(namespace, "plain"))
	text, err := kubectlCommand(t.Context(), "delete", "namespace", namespace, "--timeout", timeout.String()).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// Owners of Applications are collected as all owners are: what they own goes
// with them, or is let go.
func TestGarbageCollection(t *testing.T) {
	for policy, stays := range map[metav1.DeletionPropagation]bool{
		metav1.DeletePropagationBackground: false,
		metav1.DeletePropagationForeground: false,
		metav1.DeletePropagationOrphan:     true,
	} {
		t.Run(string(policy), func(t *testing.T) {
			namespace := newNamespace(t)
			configMaps := administrator.mustClient(t).CoreV1().ConfigMaps(namespace)
			owner := create(t, administrator, plain(namespace, "owner"))
			create(t, administrator, plain(namespace, "app"), annotated, func(cm *corev1.ConfigMap) {
				block := true
				cm.OwnerReferences = []metav1.OwnerReference{{
					APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &block,
				}}
			})
			if err := configMaps.Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
				t.Fatal(err)
			}
			err := wait(t.Context(), func() (bool, error) {
				ownerGone := gone(t.Context(), t, namespace, "owner")
				if !stays {
					return ownerGone && gone(t.Context(), t, namespace, "app"), nil
				}
				app, err := configMaps.Get(t.Context(), "app", metav1.GetOptions{})
				return ownerGone && err == nil && len(app.OwnerReferences) == 0, err
			})
			if err != nil {
				t.Errorf("wait for the garbage collector: %v", err)
			}
		})
	}
}

func gone(ctx context.Context, t *testing.T, namespace, name string) bool {
	t.Helper()
	_, err := administrator.mustClient(t).CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil
}
