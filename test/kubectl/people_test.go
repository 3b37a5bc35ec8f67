package kubectl

import (
	"context"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// The users of the sessions.
const (
	edith = "edith" // has the ClusterRole edit
	carl  = "carl"  // has all rights on ConfigMaps, and no others
	vera  = "vera"  // has the ClusterRole view
)

// namespaceFor creates a namespace, as makeNamespace does, and removes it when the test is over.
func namespaceFor(t *testing.T, name string) {
	t.Helper()
	kit.LookAtSources(t)
	kit.Must(t, makeNamespace(t.Context(), name))
	t.Cleanup(func() { kit.Must(t, removeNamespace(context.WithoutCancel(t.Context()), name)) })
}

// makeNamespace creates a namespace in which the users have their rights.
func makeNamespace(ctx context.Context, name string) error {
	_, err := hub.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	_, err = hub.RbacV1().Roles(name).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "configmaps"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create Role configmaps: %w", err)
	}
	for _, grant := range []struct{ who, kind, role, verb, resource string }{
		{edith, "ClusterRole", "edit", "create", "services"},
		{carl, "Role", "configmaps", "create", "configmaps"},
		{vera, "ClusterRole", "view", "get", "configmaps"},
	} {
		_, err := hub.RbacV1().RoleBindings(name).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: grant.who},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: grant.kind, Name: grant.role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: grant.who}},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("bind %s to %s: %w", grant.who, grant.role, err)
		}
		if err := awaitRight(ctx, grant.who, grant.verb, grant.resource, name); err != nil {
			return err
		}
	}
	// The root certificate appears a moment later; without this wait, only some lists
	// would have it.
	return kit.Wait(ctx, "kube-root-ca.crt", func() (bool, error) {
		live, err := hub.Find(ctx, kit.ConfigMaps, name, "kube-root-ca.crt")
		return live != nil, err
	})
}

// awaitRight waits until RBAC, which takes effect after a moment, grants a user a
// right.
func awaitRight(ctx context.Context, who, verb, resource, namespace string) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               who,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: resource, Namespace: namespace},
	}}
	return kit.Wait(ctx, fmt.Sprintf("%s may %s %s", who, verb, resource), func() (bool, error) {
		answer, err := hub.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
}

// removeNamespace deletes a namespace and waits until it is gone, with the objects of
// its Applications, so that a session can run again.
func removeNamespace(ctx context.Context, name string) error {
	if err := hub.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return kit.Wait(ctx, "namespace "+name+" is gone", func() (bool, error) {
		live, err := hub.Find(ctx, kit.Namespaces, "", name)
		return live == nil, err
	})
}
