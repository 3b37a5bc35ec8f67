package clusters

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// A cluster does not answer any more: its address refuses connections, or drops all packets. Its Applications report
// that, and its agent stays ready and asks it rarely. A deleted one waits until a user gives up on the objects there,
// which a warning lists. One that moved away runs on its new cluster, and the user gives up only on the old one. One
// that stays is repaired when the cluster is back, and its object is the same.
func TestApplicationOfALostClusterCanBeGivenUp(t *testing.T) {
	t.Parallel()
	namespaces := map[string]string{}
	for name := range absences {
		namespaces[name] = "a36-" + name
		newNamespace(t, namespaces[name], planes()...)
	}
	rescue := enrol(t, "a36-rescue", env.east, slices.Collect(maps.Values(namespaces)), quickLease()...)
	kit.Must(t, rescue.Start(t.Context()))
	for name, leave := range absences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newLoss(t, namespaces[name], rescue).run(t, leave)
		})
	}
}

// loss is the loss of a cluster, with Applications: one is deleted meanwhile, one is
// moved to another cluster, and the others stay.
type loss struct {
	namespace      string
	wire           *installation.Wire
	lost, rescue   *spoke
	deleted, moved app
	staying        []app
}

// many is the number of objects of the deleted Application: an unreachable cluster must
// not delay it once for each object.
const many = 12

// staying is the number of Applications that stay.
const staying = 8

func newLoss(t *testing.T, namespace string, rescue *spoke) *loss {
	t.Helper()
	l := &loss{namespace: namespace, wire: newWire(t, env.west), rescue: rescue}
	l.lost = enrol(t, namespace+"-lost", env.west, []string{namespace}, quickLease()...)
	l.lost.through(t, &l.lost.Target, l.wire)
	kit.Must(t, l.lost.Start(t.Context()))
	var manifest strings.Builder
	for i := range many {
		fmt.Fprintf(&manifest, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-%d}, data: {a: b}}\n", i)
	}
	l.deleted = newApp(t, l.lost.Name, namespace, "deleted", manifest.String(), "")
	l.moved = newApp(t, l.lost.Name, namespace, "moved", webManifest, "")
	for i := range staying {
		l.staying = append(l.staying, newSettings(t, l.lost.Name, namespace, fmt.Sprintf("stays-%d", i)))
	}
	for _, each := range append([]app{l.deleted, l.moved}, l.staying...) {
		each.MustSettle(t, l.lost.Name)
	}
	return l
}

func (l *loss) run(t *testing.T, leave func(*installation.Wire) error) {
	uid := l.uidOfStaying(t)
	kit.Must(t, leave(l.wire))
	gone, began, before := env.west.Mark(t), time.Now(), l.wire.Connections()
	for _, each := range l.staying {
		env.west.Change(t, kit.ConfigMaps, l.namespace, settingsOf(each), drift(0))
	}
	l.deleted.Delete(t)
	l.moved.Annotate(t, "cluster", l.rescue.Name)
	l.giveUpDeleted(t)
	l.giveUpMoved(t)
	if writes := gone.Requests(t, kit.By(kit.AgentUser(l.lost.Name)), isWork); len(writes) > 0 {
		t.Errorf("the cluster was not lost: %s", kit.List(writes))
	}
	l.lost.mustLive(t)
	for _, each := range l.staying {
		each.awaitUnreachable(t)
	}
	const inAMinute = 10 // calls for each Application, all of them maybe in the first seconds, and one each second for the Lease
	tried, away := l.wire.Connections()-before, time.Since(began)
	if most := int64((1+away.Minutes())*inAMinute*(staying+2) + 2*away.Seconds() + many); tried > most {
		t.Errorf("%d connections were tried in %s, want at most %d", tried, away, most)
	}
	l.checkLeft(t)
	for _, each := range l.staying {
		mustHave(t, kit.Timeout, env.west, l.namespace, settingsOf(each), keyOf(0), "right")
	}
	if now := l.uidOfStaying(t); now != uid {
		t.Error("an object of an Application that stays was created anew")
	}
}

func (l *loss) uidOfStaying(t *testing.T) any {
	t.Helper()
	return kit.Field(env.west.Get(t, kit.ConfigMaps, l.namespace, settingsOf(l.staying[0])), "metadata", "uid")
}

// giveUpDeleted annotates the deleted Application to give up on all its objects.
func (l *loss) giveUpDeleted(t *testing.T) {
	t.Helper()
	l.deleted.awaitUnreachable(t)
	if !l.lost.IsReady(t.Context()) {
		t.Error("the agent is not ready, only because its target does not answer")
	}
	var left []string
	for i := range many {
		left = append(left, fmt.Sprintf("ConfigMap %s-%d", l.deleted.Name, i))
	}
	checkWarning(t, l.deleted.giveUp(t, "true"), left)
	l.deleted.MustGo(t)
	l.deleted.awaitEvent(t, left[0])
}

// giveUpMoved annotates the other Application to give up on the cluster that it has left.
func (l *loss) giveUpMoved(t *testing.T) {
	t.Helper()
	l.moved.awaitReady(t, l.rescue.Name)
	if holders := application.HoldersOf(l.moved.Stored(t)); !slices.Contains(holders, l.lost.Name) {
		t.Errorf("the lost cluster was given up although nobody said so: %v", holders)
	}
	left := []string{"ConfigMap moved-settings", "Service moved", "Deployment moved"}
	checkWarning(t, l.moved.giveUp(t, l.lost.Name), left)
	l.moved.MustSettle(t, l.rescue.Name)
}

// checkLeft brings the cluster back. Objects that were given up have no owner, and
// stay.
func (l *loss) checkLeft(t *testing.T) {
	t.Helper()
	kit.Must(t, l.wire.Mend())
	after := newApp(t, l.lost.Name, l.namespace, "after", webManifest, "")
	after.MustSettle(t, l.lost.Name)
	for _, name := range []string{"deleted-0", "moved-settings"} {
		if env.west.Get(t, kit.ConfigMaps, l.namespace, name) == nil {
			t.Errorf("what was given up is gone: %s", name)
		}
	}
}

// giveUp annotates the Application as the user, and returns the output of kubectl.
func (a app) giveUp(t *testing.T, what string) string {
	t.Helper()
	return env.hub.Kubectl(t, "--namespace", a.Namespace, "annotate", "configmap", a.Name, application.ForceDeleteAnnotation+"="+what)
}

// checkWarning fails unless kubectl has warned of each of these objects.
func checkWarning(t *testing.T, said string, left []string) {
	t.Helper()
	for _, object := range left {
		kind, name, _ := strings.Cut(object, " ")
		if !strings.Contains(said, "Warning: ") || !strings.Contains(said, kind) || !strings.Contains(said, name) {
			t.Errorf("kubectl does not warn that %s is left: %s", object, said)
		}
	}
}

// awaitUnreachable waits until the Application reports that its cluster does not
// answer.
func (a app) awaitUnreachable(t *testing.T) {
	t.Helper()
	a.awaitReconciled(t, kit.Timeout, metav1.ConditionUnknown, "TargetUnreachable")
}

// awaitReady waits until the agent of that cluster reports that the Application is
// ready.
func (a app) awaitReady(t *testing.T, cluster string) {
	t.Helper()
	kit.Eventually(t, func() string {
		status := a.status(t)
		if status.ClusterName() == cluster && meta.IsStatusConditionTrue(status.Conditions, application.ReadyCondition) {
			return ""
		}
		return fmt.Sprintf("%s speaks of %q: %v", a, status.ClusterName(), status.Conditions)
	})
}

// awaitEvent waits for an Event about the Application that names an object.
func (a app) awaitEvent(t *testing.T, object string) {
	t.Helper()
	_, name, _ := strings.Cut(object, " ")
	kit.Eventually(t, func() string {
		events, err := env.hub.EventsV1().Events(a.Namespace).List(t.Context(), metav1.ListOptions{})
		kit.Must(t, err)
		var notes []string
		for _, event := range events.Items {
			if event.Regarding.Name != a.Name || event.Regarding.Kind != "ConfigMap" || event.Reason == "Created" {
				continue
			}
			if strings.Contains(event.Note, name) {
				return ""
			}
			notes = append(notes, event.Reason+": "+event.Note)
		}
		return fmt.Sprintf("no Event about %s says that %s is left: %q", a, object, notes)
	})
}
