package ha

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Of two agents of one name, one acts, and the other reports why it does not. The second
// has another target, a mistake that only the hub can see.
func TestOfTwoTargetsOfOneNameOneIsRefused(t *testing.T) {
	d := newDuplicate(t)
	d.start(t)
	t.Run("does not act", d.isIdle)
	t.Run("only deletion helps", d.waitsForDeletion)
}

// duplicate is an agent of the name local whose target is another cluster.
type duplicate struct {
	*replica

	target *kit.Plane
	begin  kit.Mark
	reader string // a token for its metrics
}

func newDuplicate(t *testing.T) *duplicate {
	t.Helper()
	other, err := kit.StartPlane(t.Context(), cluster.Options{})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, other.Stop()) })
	d := &duplicate{target: other, begin: hub.Mark(t), reader: metricsReader(t, other)}
	other.CreateNamespace(t, application.AgentsNamespace)
	d.replica = newReplica(t, "duplicate", "--kubeconfig", other.Kubeconfig(), "--hub-kubeconfig", "{hub}", "--heartbeat-interval=1s")
	t.Cleanup(func() { d.end(t) })
	return d
}

// isIdle checks that a drift on the hub is repaired there, and that nothing is done
// elsewhere.
func (d *duplicate) isIdle(t *testing.T) {
	s := newShelf(t, 2, 5)
	d.target.CreateNamespace(t, s.namespace) // no other object would use it
	d.awaitRefusal(t)
	seen := s.begin(t, len(s.objects))
	s.disturbAll(t)
	seen.awaitMiddle(t)
	awaitCalm(t, s.namespace)

	wrote := d.begin.Requests(t, kit.ByCredential(d.credential), kit.Request.IsWrite,
		func(r kit.Request) bool { return r.Object.Resource != "events" })
	if len(wrote) > 0 {
		t.Errorf("it has written to the hub: %v", wrote)
	}
	list, err := d.target.CoreV1().ConfigMaps(s.namespace).List(t.Context(), metav1.ListOptions{})
	kit.Must(t, err)
	for _, cm := range list.Items {
		if slices.Contains(s.objects, cm.Name) {
			t.Errorf("it has made %s on its target", cm.Name)
		}
	}
}

// waitsForDeletion checks that the second one waits, however long the other one is
// away.
func (d *duplicate) waitsForDeletion(t *testing.T) {
	dismissAgents(t)
	leases := hub.CoordinationV1().Leases(application.AgentsNamespace)
	name := application.HubLease(application.LocalCluster)
	begin := hub.Mark(t)
	asked := func() int {
		return len(begin.Requests(t, func(r kit.Request) bool {
			return kit.ByCredential(d.credential)(r) && r.Verb == "get" && r.Object.Name == name
		}))
	}
	kit.Eventually(t, func() string {
		if n := asked(); n < 5 {
			return fmt.Sprintf("it has asked for the Lease %d times", n)
		}
		return ""
	})
	d.awaitRefusal(t)
	if lease, err := leases.Get(t.Context(), name, metav1.GetOptions{}); err != nil || *lease.Spec.HolderIdentity != "" {
		t.Errorf("%v: the Lease, which was given back, has come to %q", err, *lease.Spec.HolderIdentity)
	}

	kit.Must(t, leases.Delete(t.Context(), name, metav1.DeleteOptions{}))
	d.awaitMetric(t, 1)
	kit.Eventually(t, func() string {
		if code, text := d.ready(t, ""); code != http.StatusOK {
			return fmt.Sprintf("it is not ready: %d %s", code, text)
		}
		return ""
	})
	d.end(t)
	if err := leases.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil { // for the agent that comes back
		t.Error(err)
	}
}

func (d *duplicate) awaitRefusal(t *testing.T) {
	t.Helper()
	kit.Eventually(t, func() string {
		if code, text := d.ready(t, "lease"); code != http.StatusInternalServerError {
			return fmt.Sprintf("it does not say that it is refused: %d %s", code, text)
		}
		return ""
	})
}

func (d *duplicate) awaitMetric(t *testing.T, value int) {
	t.Helper()
	want := []string{fmt.Sprintf(`krake_agent_acting{cluster="local"} %d`, value)}
	kit.Eventually(t, func() string {
		if got := d.metric(t, "krake_agent_acting", d.reader); !slices.Equal(got, want) {
			return fmt.Sprintf("the metric is %q, want %q", got, want)
		}
		return ""
	})
}

// metricsReader returns a token that allows its user to read metrics.
func metricsReader(t *testing.T, at *kit.Plane) string {
	t.Helper()
	at.Kubectl(t, "create", "clusterrole", "reader", "--verb=get", "--non-resource-url=/metrics")
	at.Kubectl(t, "create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=default:default")
	return at.Token(t, "default", "default")
}
