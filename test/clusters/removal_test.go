package clusters

import (
	"fmt"
	"os"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	enrolment "github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/test/kit"
)

func remove(t *testing.T, cluster string, force bool) (said string, err error) {
	t.Helper()
	var out strings.Builder
	err = enrolment.Remove(t.Context(), enrolment.RemoveOptions{
		Hub: configOfHub, Cluster: cluster, Force: force,
	}, &out)
	return out.String(), err
}

// A cluster with Applications is not removed, unless that is requested.
func TestRemoveUnderApplications(t *testing.T) {
	options := optionsFor(t, "used")
	mustEnrol(t, options)
	agent := agentOf(t, options)
	awaitRights(t, agent, "used")
	env.hub.CreateNamespace(t, "hidden")
	newSettings(t, "used", "hidden", "named") // where its agent does not see it
	newSettings(t, "used", "used", "held")
	app{env.hub.App("used", "held")}.claim(t, agent, "used")
	_, err := remove(t, "used", false)
	if err == nil || !strings.Contains(err.Error(), "2 Applications name cluster used or have objects there:\n  hidden/named\n  used/held\n") {
		t.Fatalf("it is not refused: %v", err)
	}
	if err := list(t, agent, "used"); err != nil {
		t.Errorf("something was removed all the same: %v", err)
	}
	said, err := remove(t, "used", true)
	if err != nil || !strings.HasSuffix(said, "Warning: configmap/used/held is still on cluster used, and no agent looks after it there\n") {
		t.Errorf("%v, said was\n%s", err, said)
	}
	expectNothingOf(t, "used")
}

// remove deletes all of an enrolment, first the token and last the Lease. It deletes
// nothing of another enrolment, and nothing that users have created. The name is free then, and earlier tokens are not
// valid for the next cluster of the name.
func TestRemove(t *testing.T) {
	t.Parallel() // it waits until the API server's cache expires
	options, neighbour := optionsFor(t, "polar"), optionsFor(t, "polar2")
	mustEnrol(t, options)
	mustEnrol(t, neighbour)
	agent := agentOf(t, options)
	awaitRights(t, agent, "polar")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "krake-cluster-polar"}}
	kit.Must(t, kit.ErrorOf(agent.CoordinationV1().Leases(agents).Create(t.Context(), lease, metav1.CreateOptions{})))
	labelled := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "theirs-", Labels: map[string]string{"krake.dev/enrolment": "polar"}}}
	labelled, err := env.hub.CoreV1().Secrets("default").Create(t.Context(), labelled, metav1.CreateOptions{})
	kit.Must(t, err)
	said, err := remove(t, "polar", false)
	if err != nil || !strings.HasPrefix(said, "secret/polar-enrolment in namespace krake-agents deleted\n") ||
		!strings.HasSuffix(said, "\nlease.coordination.k8s.io/krake-cluster-polar in namespace krake-agents deleted\n") {
		t.Fatalf("%v, said was\n%s", err, said)
	}
	kit.Eventually(t, func() string { return isRefusedToken(t, agent, "polar") }) // the API server caches a token for 10 s
	expectNothingOf(t, "polar")
	if _, err := env.hub.CoreV1().Secrets("default").Get(t.Context(), labelled.Name, get); err != nil {
		t.Errorf("somebody's Secret that has our label: %v", err)
	}
	kit.Must(t, kit.ErrorOf(env.hub.CoreV1().Namespaces().Get(t.Context(), "polar", get)))
	awaitRights(t, agentOf(t, neighbour), "polar2")
	if _, err := remove(t, "polar", true); err == nil || !strings.HasPrefix(err.Error(), `cluster "polar" is not enrolled: kubectl get serviceaccounts`) {
		t.Errorf("what is gone is removed: %v", err)
	}

	before := agentOf(t, enrolment.Options{Out: kept(t, options)})
	mustEnrol(t, options)
	awaitRights(t, agentOf(t, options), "polar")
	kit.Eventually(t, func() string { return isRefusedToken(t, before, "polar") })
}

// kept copies the agent's files, which the next enrolment overwrites.
func kept(t *testing.T, options enrolment.Options) (folder string) {
	t.Helper()
	folder = t.TempDir()
	kit.Must(t, os.CopyFS(folder, os.DirFS(options.Out)))
	return folder
}

// isRefusedToken returns a complaint if the API server still accepts a token.
func isRefusedToken(t *testing.T, agent kubernetes.Interface, namespace string) (problem string) {
	t.Helper()
	if err := list(t, agent, namespace); !apierrors.IsUnauthorized(err) {
		return fmt.Sprintf("the token is not refused: %v", err)
	}
	return ""
}

// expectNothingOf searches for the objects of an enrolment, by label and by name.
func expectNothingOf(t *testing.T, cluster string) {
	t.Helper()
	labelled := metav1.ListOptions{LabelSelector: "krake.dev/enrolment=" + cluster}
	roles, err := env.hub.RbacV1().Roles("").List(t.Context(), labelled)
	if err != nil || len(roles.Items) > 0 {
		t.Errorf("roles are left: %v %v", roles.Items, err)
	}
	bindings, err := env.hub.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
	kit.Must(t, err)
	for _, binding := range bindings.Items {
		for _, subject := range binding.Subjects {
			if subject == (rbacv1.Subject{Kind: "ServiceAccount", Name: cluster, Namespace: agents}) {
				t.Errorf("binding %s/%s is left", binding.Namespace, binding.Name)
			}
		}
	}
	expectNone(t, cluster, map[string]error{
		"ServiceAccount": kit.ErrorOf(env.hub.CoreV1().ServiceAccounts(agents).Get(t.Context(), cluster, get)),
		"Secret":         kit.ErrorOf(env.hub.CoreV1().Secrets(agents).Get(t.Context(), cluster+"-enrolment", get)),
		"ClusterRole":    kit.ErrorOf(env.hub.RbacV1().ClusterRoles().Get(t.Context(), "krake-deploy-to-"+cluster, get)),
		"Lease":          kit.ErrorOf(env.hub.CoordinationV1().Leases(agents).Get(t.Context(), "krake-cluster-"+cluster, get)),
	})
}
