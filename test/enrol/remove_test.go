package enrol

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/enrol"
)

// soon is how long a token may be good for after its cluster was removed: the API
// server remembers for 10 seconds who has been authenticated.
const soon = 15 * time.Second

func remove(t *testing.T, cluster string, force bool) (said string, err error) {
	t.Helper()
	var out strings.Builder
	err = enrol.Remove(t.Context(), enrol.RemoveOptions{
		Hub: enrol.Connection{Kubeconfig: hub.Kubeconfig()}, Cluster: cluster, Force: force,
	}, &out)
	return out.String(), err
}

// A cluster is not removed under its Applications. Without them all of it goes,
// and what was not of the enrolment stays.
func TestRemove(t *testing.T) {
	options, neighbour := optionsFor(t, "north"), optionsFor(t, "north2")
	enrolled(t, options)
	enrolled(t, neighbour)
	agent := agentOf(t, options)
	awaitRights(t, agent, "north")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "krake-cluster-north"}}
	if _, err := agent.CoordinationV1().Leases(agents).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	newNamespace(t, "south")
	application(t, "south", "named", "north") // where its agent does not see it
	application(t, "north", "held", "north")
	if _, err := agent.CoreV1().ConfigMaps("north").Patch(t.Context(), "held", types.MergePatchType, claim("north"), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := remove(t, "north", false)
	if err == nil || !strings.Contains(err.Error(), "2 Applications name cluster north or have objects there:\n  north/held\n  south/named\n") {
		t.Fatalf("it is not refused: %v", err)
	}
	if _, err := agent.CoreV1().ConfigMaps("north").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("something was removed all the same: %v", err)
	}

	said, err := remove(t, "north", true)
	if err != nil {
		t.Fatal(err)
	}
	removed := time.Now()
	eventually(t, func() string {
		if _, err := agent.CoreV1().ConfigMaps("north").List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			return "the token is not refused"
		}
		return ""
	})
	if after := time.Since(removed); after > soon {
		t.Errorf("the token is refused after %s, want %s", after, soon)
	} else {
		t.Logf("the token is refused after %s", after.Round(time.Millisecond))
	}
	if lines := strings.Split(strings.TrimSpace(said), "\n"); len(lines) < 3 ||
		lines[0] != "secret/north-enrolment in namespace krake-agents deleted" ||
		lines[len(lines)-3] != "lease.coordination.k8s.io/krake-cluster-north in namespace krake-agents deleted" ||
		lines[len(lines)-1] != "Warning: configmap/south/named is still on cluster north, where nobody looks after it" {
		t.Errorf("said was\n%s", said)
	}
	expectNothingOf(t, "north")
	if _, err := client(t, hub).CoreV1().Namespaces().Get(t.Context(), "north", get); err != nil {
		t.Error(err)
	}
	awaitRights(t, agentOf(t, neighbour), "north2")

	if _, err := remove(t, "north", true); err == nil || err.Error() != `cluster "north" is not enrolled` {
		t.Errorf("what is gone is removed: %v", err)
	}
	// The name is free, and an old token is that of another account.
	enrolled(t, options)
	awaitRights(t, agentOf(t, options), "north")
	if _, err := agentOf(t, options).CoreV1().ConfigMaps("north").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

// expectNothingOf looks for what an enrolment makes, by its label and by its names.
func expectNothingOf(t *testing.T, cluster string) {
	t.Helper()
	admin := client(t, hub)
	labelled := metav1.ListOptions{LabelSelector: enrol.Label + "=" + cluster}
	roles, err := admin.RbacV1().Roles("").List(t.Context(), labelled)
	if err != nil || len(roles.Items) > 0 {
		t.Errorf("roles are left: %v %v", roles.Items, err)
	}
	bindings, err := admin.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range bindings.Items {
		for _, subject := range binding.Subjects {
			if subject == (rbacv1.Subject{Kind: "ServiceAccount", Name: cluster, Namespace: agents}) {
				t.Errorf("binding %s/%s is left", binding.Namespace, binding.Name)
			}
		}
	}
	for what, err := range map[string]error{
		"ServiceAccount": second(admin.CoreV1().ServiceAccounts(agents).Get(t.Context(), cluster, get)),
		"Secret":         second(admin.CoreV1().Secrets(agents).Get(t.Context(), cluster+"-enrolment", get)),
		"ClusterRole":    second(admin.RbacV1().ClusterRoles().Get(t.Context(), "krake-deploy-to-"+cluster, get)),
		"Lease":          second(admin.CoordinationV1().Leases(agents).Get(t.Context(), "krake-cluster-"+cluster, get)),
	} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("the %s of %s is left: %v", what, cluster, err)
		}
	}
}
