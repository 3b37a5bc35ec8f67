package policies

import (
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Messages of the policy krake-agents-leases.
const (
	localsLeases = "an agent writes only its own Leases krake-agent-local (those of shards, too) and krake-cluster-local in namespace krake-agents: leave the others to theirs"
	nobodys      = "an agent writes only its own Leases krake-agent- (those of shards, too) and krake-cluster- in namespace krake-agents: leave the others to theirs"
	othersName   = "the name of the cluster is that of another target, as krake.dev/target says: for it to be this one's, have an administrator delete the Lease"
)

func lease(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// An agent may create, update, patch and delete the Leases of its own cluster, and no
// others.
func TestAgentsWriteTheirOwnLeases(t *testing.T) {
	for _, c := range []struct {
		what, namespace, name string
		who                   identity
		want                  string
	}{
		{"the Lease of the target", "krake-agents", "krake-agent-local", agent("local"), allowed},
		{"the Lease of the hub", "krake-agents", "krake-cluster-local", agent("local"), allowed},
		{"that of a shard", "krake-agents", "krake-agent-local.shard-7", agent("local"), allowed},
		{"that of a shard of another agent", "krake-agents", "krake-agent-other.shard-7", agent("local"), localsLeases},
		{"that of a shard that there cannot be", "krake-agents", "krake-agent-local.shard-8", agent("local"), localsLeases},
		{"one that is nearly that of a shard", "krake-agents", "krake-agent-local-shard-7", agent("local"), localsLeases},
		{"the name of another cluster", "krake-agents", "krake-cluster-other", agent("local"), localsLeases},
		{"one whose name begins so", "krake-agents", "krake-agent-local2", agent("local"), localsLeases},
		{"that of whose name its own begins with", "krake-agents", "krake-agent-loc", agent("local"), localsLeases},
		{"that of a controller", "kube-system", "kube-controller-manager-2", agent("local"), fmt.Sprintf(closedMessage, "kube-system")},
		{"its own, by the name without the group", "krake-agents", "krake-agent-local", namesake, allowed},
		{"another's, by the name without the group", "krake-agents", "krake-agent-other", namesake, localsLeases},
		{"any, by the group alone", "krake-agents", "krake-agent-local", impostor, nobodys},
		{"an administrator, whatever", "krake-agents", "krake-cluster-other", administrator, allowed},
	} {
		t.Run(c.who.name+": "+c.what, func(t *testing.T) {
			theirs := c.who.mustClient(t).CoordinationV1().Leases(c.namespace)
			admin := server.CoordinationV1().Leases(c.namespace)
			expect(t, c.want, kit.ErrorOf(theirs.Create(t.Context(), lease(c.name), metav1.CreateOptions{})))
			if c.want != allowed {
				kit.Must(t, kit.ErrorOf(admin.Create(t.Context(), lease(c.name), metav1.CreateOptions{})))
			}
			stored, err := admin.Get(t.Context(), c.name, metav1.GetOptions{})
			kit.Must(t, err)
			stored.Spec.HolderIdentity = new(string)
			expect(t, c.want, kit.ErrorOf(theirs.Update(t.Context(), stored, metav1.UpdateOptions{})))
			const patch = `{"spec":{"leaseDurationSeconds":5}}`
			expect(t, c.want, kit.ErrorOf(theirs.Patch(t.Context(), c.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})))
			only := metav1.ListOptions{FieldSelector: "metadata.name=" + c.name}
			expect(t, c.want, theirs.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, only))
			expect(t, c.want, theirs.Delete(t.Context(), c.name, metav1.DeleteOptions{}))
			if c.want != allowed {
				kit.Must(t, admin.Delete(t.Context(), c.name, metav1.DeleteOptions{}))
			}
		})
	}
	generated := lease("")
	generated.GenerateName = "krake-agent-local"
	leases := agent("local").mustClient(t).CoordinationV1().Leases("krake-agents")
	expect(t, localsLeases, kit.ErrorOf(leases.Create(t.Context(), generated, metav1.CreateOptions{})))
}

// A cluster name belongs to its target until an administrator releases it. The agent of
// another target neither overwrites nor deletes that record.
func TestAgentsKeepTheTargetOfALease(t *testing.T) {
	const name = "krake-cluster-local"
	admin := server.CoordinationV1().Leases("krake-agents")
	local := agent("local").mustClient(t).CoordinationV1().Leases("krake-agents")
	set := func(l *coordinationv1.Lease, target string) *coordinationv1.Lease {
		l.Annotations = map[string]string{"krake.dev/target": target}
		return l
	}
	for _, c := range []struct {
		what, before, after string
		written, deleted    string // messages of the policy
	}{
		{"take a name that nobody has", "", "a", allowed, othersName},
		{"leave the name to nobody, as before", "", "", allowed, allowed},
		{"renew it", "a", "a", allowed, othersName},
		{"take it from another", "a", "b", othersName, othersName},
		{"take it from another, and say nothing", "a", "", othersName, othersName},
	} {
		t.Run(c.what, func(t *testing.T) {
			stored, err := admin.Create(t.Context(), set(lease(name), c.before), metav1.CreateOptions{})
			kit.Must(t, err)
			expect(t, c.written, kit.ErrorOf(local.Update(t.Context(), set(stored, c.after), metav1.UpdateOptions{})))
			expect(t, c.deleted, local.Delete(t.Context(), name, metav1.DeleteOptions{}))
			if c.deleted != allowed {
				kit.Must(t, admin.Delete(t.Context(), name, metav1.DeleteOptions{}))
			}
		})
	}
}

// The policy is for the Leases of agents: an agent may write no others.
func TestAgentsMayWriteNoLeasesElsewhere(t *testing.T) {
	for _, namespace := range []string{"default", "kube-system", "kube-node-lease", "krake-system"} {
		for _, verb := range []string{"create", "update", "patch", "delete"} {
			if may(t, asSubject("local"), verb, "coordination.k8s.io", "leases", namespace) {
				t.Errorf("it may %s Leases in %s", verb, namespace)
			}
		}
	}
}
