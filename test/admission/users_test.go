package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/kit"
)

// user is a user of the API server.
type user string

// The users are named after the role that [newNamespace] binds them to in each
// namespace; root is bound to cluster-admin.
const (
	viewer user = "view"
	low    user = "low" // may do everything with ConfigMaps, and nothing else
	editor user = "edit"
	admin  user = "admin"
	root   user = "root"
)

// bindClusterAdmin binds root to cluster-admin.
func bindClusterAdmin(ctx context.Context) error {
	_, err := hub.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: string(root)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{root.subject()},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind %s: %w", root, err)
	}
	return nil
}

// bindUsers binds the users to their roles in a namespace. The API server processes the
// bindings in order, with low's as the last.
func bindUsers(t *testing.T, namespace string) {
	t.Helper()
	for _, u := range []user{viewer, editor, admin} {
		bind(t, u, namespace, "ClusterRole", string(u))
	}
	grant(t, low, namespace, everyConfigMap())
	kit.EventuallyTrue(t, "the API server does not know the bindings", func() bool { return low.may(t, "create", "configmaps", namespace) })
}

func (u user) subject() rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: string(u)}
}

// client returns a client of the user, without a rate limit.
func (u user) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	return clientAs(t, rest.ImpersonationConfig{UserName: string(u)})
}

func clientAs(t *testing.T, who rest.ImpersonationConfig) kubernetes.Interface {
	t.Helper()
	config := hub.RESTConfig()
	config.Impersonate = who
	client, err := kubernetes.NewForConfig(config)
	kit.Must(t, err)
	return client
}

// kubectl runs kubectl as the user, with an input, and returns its stdout and stderr, where a test is about what it does.
func (u user) kubectl(input string, arguments ...string) (string, error) {
	arguments = append([]string{"--as", string(u), "--as-group", "system:authenticated"}, arguments...)
	return kit.TryKubectl(context.Background(), hub.Cluster, input, arguments...)
}

// may reports whether RBAC allows a request of the user. The resource is named with its API group.
func (u user) may(t *testing.T, verb, resource, namespace string) bool {
	t.Helper()
	resource, group, _ := strings.Cut(resource, ".")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace},
	}}
	answer, err := u.client(t).AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	kit.Must(t, err)
	return answer.Status.Allowed
}
