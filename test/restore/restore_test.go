package restore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// within is how long an agent may be wrong after the restore: the resync period of the agents here, and a
// restart of the control plane.
const within = 90 * time.Second

// world is a namespace with Applications of one agent, whose objects are on a control plane. Their names
// begin alike.
type world struct {
	namespace, cluster, prefix string
	target                     *kit.Plane
}

func newWorld(t *testing.T, namespace, cluster, prefix string, target *kit.Plane) world {
	t.Helper()
	w := world{namespace, cluster, prefix, target}
	for _, plane := range []*kit.Plane{env.hub, target} {
		if _, err := plane.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
			plane.CreateNamespace(t, namespace)
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "unrelated"}}
		if _, err := plane.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			kit.Must(t, err)
		}
	}
	return w
}

func manifest(name, colour string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-settings}\ndata: {colour: %s}\n", name, colour)
}

func (w world) create(t *testing.T, name string) kit.App {
	t.Helper()
	app := env.hub.CreateApp(t, kit.Application(w.namespace, w.prefix+name, manifest(w.prefix+name, "green"), kit.On(w.cluster)))
	w.has(t, name, "green")
	app.MustSettle(t, w.cluster)
	return app
}

func (w world) app(name string) kit.App { return env.hub.App(w.namespace, w.prefix+name) }

func (w world) respec(t *testing.T, name, colour string) {
	t.Helper()
	patch := kit.JSON(t, map[string]any{"data": map[string]any{"spec.manifest": manifest(w.prefix+name, colour)}})
	w.app(name).Patch(t, string(patch))
	w.has(t, name, colour)
}

// has waits until the object of an Application has a colour, "" if it is gone.
func (w world) has(t *testing.T, name, colour string) {
	t.Helper()
	kit.EventuallyWithin(t, within, func() string {
		got, _ := kit.Field(w.target.Get(t, kit.ConfigMaps, w.namespace, w.prefix+name+"-settings"), "data", "colour").(string)
		if got != colour {
			return fmt.Sprintf("the colour of %s is %q, want %q", name, got, colour)
		}
		return ""
	})
}

// drifts changes the object of an Application, and waits until that is reverted.
func (w world) drifts(t *testing.T, name, colour string) {
	t.Helper()
	w.target.Change(t, kit.ConfigMaps, w.namespace, w.prefix+name+"-settings", `{"data":{"colour":"red"}}`)
	started := time.Now()
	w.has(t, name, colour)
	t.Logf("%s: the drift of %s is reverted after %s", w.cluster, name, time.Since(started).Round(time.Millisecond))
}

// past is what happens before the snapshot, and later what happens after it.
func (w world) past(t *testing.T) {
	t.Helper()
	for _, name := range []string{"changed", "deleted", "drifted"} {
		w.create(t, name)
	}
}

func (w world) later(t *testing.T) {
	t.Helper()
	w.respec(t, "changed", "blue")
	w.create(t, "created")
	deleted := w.app("deleted")
	deleted.Delete(t)
	deleted.MustGo(t)
	w.has(t, "deleted", "")
	for _, plane := range []*kit.Plane{env.hub, w.target} {
		advance(t, plane, w.namespace)
	}
}

// works checks that the agent carries out everything that is new.
func (w world) works(t *testing.T, colour string) {
	t.Helper()
	w.drifts(t, "drifted", "green")
	w.drifts(t, "changed", colour)
	w.respec(t, "changed", "yellow")
	w.create(t, "new")
	w.drifts(t, "new", "green")
	app := w.app("drifted")
	app.Delete(t)
	app.MustGo(t)
	w.has(t, "drifted", "")
}

// leases returns the versions of the agents' Leases.
func leases(t *testing.T, plane *kit.Plane) map[string]string {
	t.Helper()
	found, err := plane.CoordinationV1().Leases(application.AgentsNamespace).List(t.Context(), metav1.ListOptions{})
	kit.Must(t, err)
	versions := map[string]string{}
	for _, lease := range found.Items {
		versions[lease.Name] = lease.ResourceVersion
	}
	return versions
}

// renewed waits until each Lease has another version than before. An agent notices no restore of a snapshot
// that has the last version that it knows: see ADR 024.
func renewed(t *testing.T, plane *kit.Plane, before map[string]string) {
	t.Helper()
	kit.EventuallyWithin(t, within, func() string {
		for name, now := range leases(t, plane) {
			if now == before[name] {
				return "Lease " + name + " was not renewed"
			}
		}
		return ""
	})
}

// The hub is restored, and with it the objects of its own agent. The objects of the other cluster went on,
// and become what the restored Applications say.
func TestTheHubIsRestoredFromASnapshot(t *testing.T) {
	kit.Long(t, "two control planes are restored")
	respawn(t)
	both := newWorld(t, "both", "local", "both-", env.hub)
	hubOnly := newWorld(t, "east", "east", "hub-", env.east)
	for _, w := range []world{both, hubOnly} {
		w.past(t)
	}
	createHabitat(t, "old")
	before := leases(t, env.hub)
	copied := snapshot(t, env.hub)
	for _, w := range []world{both, hubOnly} {
		w.later(t)
	}
	createHabitat(t, "later") // so that a watch of before says nothing for long
	renewed(t, env.hub, before)
	restore(t, env.hub, copied)
	started := time.Now()
	for _, w := range []world{both, hubOnly} {
		w.has(t, "changed", "green")
		w.has(t, "deleted", "green")
		t.Logf("%s: as the snapshot says after %s", w.cluster, time.Since(started).Round(time.Millisecond))
	}
	both.has(t, "created", "")
	// No Application says what becomes of it: its marks say whose it was. It can be adopted.
	hubOnly.has(t, "created", "green")
	env.hub.CreateApp(t, kit.Application(hubOnly.namespace, hubOnly.prefix+"created",
		manifest(hubOnly.prefix+"created", "green"), kit.On(hubOnly.cluster), kit.Annotation("adopt", "true")))
	hubOnly.app("created").MustSettle(t, hubOnly.cluster)
	hubOnly.drifts(t, "created", "green")
	createHabitat(t, "new")
	for _, w := range []world{both, hubOnly} {
		w.works(t, "green")
	}
}

var habitats = schema.GroupVersionResource{Group: "habitat.sh", Version: "v1beta1", Resource: "habitats"}

// createHabitat creates a Habitat on the hub, and waits until it has the health of its StatefulSet, from
// the status of its Application: no Pod of it runs.
func createHabitat(t *testing.T, name string) {
	t.Helper()
	habitat := fmt.Sprintf(`{"apiVersion": "habitat.sh/v1beta1", "kind": "Habitat", "metadata": {"name": %q, "namespace": "both"},
		"customVersion": "v1beta2", "spec": {"v1beta2": {"image": "example.com/web:1", "count": 1, "service": {"name": "web", "topology": "standalone"}}}}`, name)
	env.hub.Apply(t, habitat)
	started := time.Now()
	kit.Eventually(t, func() string {
		if conditions := fmt.Sprint(kit.Field(env.hub.Get(t, habitats, "both", name), "status", "conditions")); !strings.Contains(conditions, "InProgress") {
			return "its conditions are " + conditions
		}
		return ""
	})
	t.Logf("Habitat %s has its status after %s", name, time.Since(started).Round(time.Millisecond))
}

// A target is restored, and the hub went on: the objects become what the Applications say.
func TestATargetIsRestoredFromASnapshot(t *testing.T) {
	kit.Long(t, "a control plane is restored")
	respawn(t)
	w := newWorld(t, "east", "east", "target-", env.east)
	w.past(t)
	before := leases(t, env.east)
	copied := snapshot(t, env.east)
	w.later(t)
	renewed(t, env.east, before)
	restore(t, env.east, copied)
	started := time.Now()
	w.has(t, "changed", "blue")
	w.has(t, "created", "green")
	t.Logf("as the Applications say after %s", time.Since(started).Round(time.Millisecond))
	w.works(t, "blue")
}
