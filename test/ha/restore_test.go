package ha

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// disaster is a hub with its own agent, and the cluster east with another one, of which one is restored from a snapshot
// while all programs run.
type disaster struct {
	hub, east    *kit.Plane
	installation *installation.Installation
	agent        *installation.Spoke
}

func (d *disaster) start(ctx context.Context) (err error) {
	for _, plane := range []**kit.Plane{&d.hub, &d.east} {
		if *plane, err = kit.StartPlane(ctx, cluster.Options{}); err != nil {
			return err
		}
	}
	// The snapshot is restored before an agent renews its Lease on the hub, so that the Lease shows nothing,
	// and the resync has to.
	agent := []string{"--resync-period=20s"}
	options := installation.Options{Overlay: "habitat", Habitats: 1, AgentArgs: agent}
	if d.installation, err = installation.InstallWith(ctx, d.hub.Cluster, options, os.Stderr); err != nil {
		return err
	}
	if d.agent, err = d.installation.Enrol(ctx, d.east.Cluster, installation.Enrolment{Name: "east", AgentArgs: agent}); err != nil {
		return err
	}
	return d.agent.Start(ctx)
}

// respawn starts agents again that have ended, as a kubelet does, until the test ends.
func (d *disaster) respawn(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	again := func(process func() *cluster.Process, kill func() error, start func(context.Context) error) {
		watching.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
					return
				case <-process().Exited():
				}
				var failure error
				err := kit.Wait(ctx, "a process that is started again", func() (bool, error) {
					failure = errors.Join(kill(), start(ctx)) // it fails while there is no API server
					return failure == nil, nil
				})
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("%v: %v", err, failure)
					}
					return
				}
				t.Log("a process has ended, and was started again")
			}
		})
	}
	i := d.installation
	again(func() *cluster.Process { return i.AgentProcess(0) }, func() error { return i.KillAgent() }, i.StartAgent)
	again(func() *cluster.Process { return i.HabitatController(0) }, func() error { return i.KillHabitat() }, i.StartHabitat)
	again(d.agent.Process, d.agent.Kill, d.agent.Start)
}

func (d *disaster) stop() error {
	var failures []error
	if d.installation != nil { // they wait for API servers that would end before them
		failures = append(failures, d.installation.KillAgent(), d.installation.KillHabitat(), d.installation.KillWebhook())
	}
	if d.agent != nil {
		failures = append(failures, d.agent.Kill())
	}
	for _, plane := range []*kit.Plane{d.hub, d.east} {
		if plane != nil {
			failures = append(failures, plane.Stop())
		}
	}
	return errors.Join(failures...)
}

// servers are the processes of a control plane that depend on etcd, in the order of their starts.
var servers = []string{"etcd", "kube-apiserver", "kube-controller-manager"}

// snapshot copies the data of etcd, and returns the folder with the copy.
func snapshot(t *testing.T, plane *kit.Plane) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "etcd")
	restart(t, plane, func(data string) error { return os.CopyFS(copied, os.DirFS(data)) })
	return copied
}

// restore replaces the data of etcd by a copy. As after a real restore, the control plane starts anew, and
// its clients go on.
func restore(t *testing.T, plane *kit.Plane, copied string) {
	t.Helper()
	restart(t, plane, func(data string) error {
		return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(copied)), os.Chmod(data, 0o700))
	})
}

// restart stops the control plane, calls do with the folder of etcd's data, and starts it again.
func restart(t *testing.T, plane *kit.Plane, do func(data string) error) {
	t.Helper()
	for _, name := range slices.Backward(servers) {
		kit.Must(t, plane.Newest(name).Kill())
	}
	kit.Must(t, do(filepath.Join(plane.Dir(), "etcd")))
	for _, name := range servers {
		_, err := plane.Again(plane.Newest(name), nil)
		kit.Must(t, err)
		if name == "kube-apiserver" {
			kit.EventuallyNil(t, func() error { // the controller manager ends without it
				return kit.ErrorOf(plane.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{}))
			})
		}
	}
}

// advance makes the versions of the API server grow, so that clients know newer ones than the snapshot.
func advance(t *testing.T, plane *kit.Plane, namespace string) {
	t.Helper()
	for i := range 200 {
		plane.Change(t, kit.ConfigMaps, namespace, "unrelated", fmt.Sprintf(`{"data":{"n":"%d"}}`, i))
	}
}

// within is how long an agent may be wrong after the restore: the resync period of the agents here, and a
// restart of the control plane.
const within = 3 * time.Minute

// site is a namespace with Applications of one agent, whose objects are on a control plane. Their names
// begin alike.
type site struct {
	*disaster

	namespace, cluster, prefix string
	target                     *kit.Plane
}

func (d *disaster) site(t *testing.T, namespace, cluster, prefix string, target *kit.Plane) site {
	t.Helper()
	s := site{d, namespace, cluster, prefix, target}
	for _, plane := range []*kit.Plane{d.hub, target} {
		if _, err := plane.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
			plane.CreateNamespace(t, namespace)
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "unrelated"}}
		if _, err := plane.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			kit.Must(t, err)
		}
	}
	return s
}

func settingsManifest(name, colour string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-settings}\ndata: {colour: %s}\n", name, colour)
}

func (s site) create(t *testing.T, name string) kit.App {
	t.Helper()
	app := s.hub.CreateApp(t, kit.Application(s.namespace, s.prefix+name, settingsManifest(s.prefix+name, "green"), kit.On(s.cluster)))
	s.has(t, name, "green")
	app.MustSettle(t, s.cluster)
	return app
}

func (s site) app(name string) kit.App { return s.hub.App(s.namespace, s.prefix+name) }

func (s site) respec(t *testing.T, name, colour string) {
	t.Helper()
	patch := kit.JSON(t, map[string]any{"data": map[string]any{"spec.manifest": settingsManifest(s.prefix+name, colour)}})
	s.app(name).Patch(t, string(patch))
	s.has(t, name, colour)
}

// has waits until the object of an Application has a colour, "" if it is gone.
func (s site) has(t *testing.T, name, colour string) {
	t.Helper()
	kit.EventuallyWithin(t, within, func() string {
		got, _ := kit.Field(s.target.Get(t, kit.ConfigMaps, s.namespace, s.prefix+name+"-settings"), "data", "colour").(string)
		if got != colour {
			return fmt.Sprintf("the colour of %s is %q, want %q", name, got, colour)
		}
		return ""
	})
}

// drifts changes the object of an Application, and waits until that is reverted.
func (s site) drifts(t *testing.T, name, colour string) {
	t.Helper()
	s.target.Change(t, kit.ConfigMaps, s.namespace, s.prefix+name+"-settings", `{"data":{"colour":"red"}}`)
	started := time.Now()
	s.has(t, name, colour)
	t.Logf("%s: the drift of %s is reverted after %s", s.cluster, name, time.Since(started).Round(time.Millisecond))
}

// past is what happens before the snapshot, and later what happens after it.
func (s site) past(t *testing.T) {
	t.Helper()
	for _, name := range []string{"changed", "deleted", "drifted"} {
		s.create(t, name)
	}
}

func (s site) later(t *testing.T) {
	t.Helper()
	s.respec(t, "changed", "blue")
	s.create(t, "created")
	deleted := s.app("deleted")
	deleted.Delete(t)
	deleted.MustGo(t)
	s.has(t, "deleted", "")
	for _, plane := range []*kit.Plane{s.hub, s.target} {
		advance(t, plane, s.namespace)
	}
}

// works checks that the agent carries out everything that is new.
func (s site) works(t *testing.T, colour string) {
	t.Helper()
	s.drifts(t, "drifted", "green")
	s.drifts(t, "changed", colour)
	s.respec(t, "changed", "yellow")
	s.create(t, "new")
	s.drifts(t, "new", "green")
	app := s.app("drifted")
	app.Delete(t)
	app.MustGo(t)
	s.has(t, "drifted", "")
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

// etcd of a hub, or of a target, is restored from a snapshot: its objects become what the restored Applications say, or
// the present ones, and the agents carry out everything that is new.
func TestRestoredFromASnapshot(t *testing.T) {
	t.Parallel() // it has planes of its own
	d := &disaster{}
	t.Cleanup(func() { kit.Must(t, d.stop()) })
	kit.Must(t, d.start(t.Context()))
	t.Cleanup(func() {
		if t.Failed() {
			kit.ShowLog(append(d.installation.Logs(), d.agent.Log())...)
		}
	})
	t.Run("the hub", d.hubIsRestored)
	t.Run("a target", d.targetIsRestored)
}

// The hub is restored, and with it the objects of its own agent. The objects of the other cluster went on,
// and become what the restored Applications say.
func (d *disaster) hubIsRestored(t *testing.T) {
	d.respawn(t)
	both := d.site(t, "both", "local", "both-", d.hub)
	hubOnly := d.site(t, "east", "east", "hub-", d.east)
	for _, w := range []site{both, hubOnly} {
		w.past(t)
	}
	d.createHabitat(t, "old")
	before := leases(t, d.hub)
	copied := snapshot(t, d.hub)
	kit.Must(t, d.installation.WaitCalled(t.Context()))
	for _, w := range []site{both, hubOnly} {
		w.later(t)
	}
	d.createHabitat(t, "later") // so that a watch of before says nothing for long
	renewed(t, d.hub, before)
	restore(t, d.hub, copied)
	kit.Must(t, d.installation.WaitCalled(t.Context()))
	started := time.Now()
	for _, w := range []site{both, hubOnly} {
		w.has(t, "changed", "green")
		w.has(t, "deleted", "green")
		t.Logf("%s: as the snapshot says after %s", w.cluster, time.Since(started).Round(time.Millisecond))
	}
	both.has(t, "created", "")
	// No Application says what becomes of it: its marks say whose it was. It can be adopted.
	hubOnly.has(t, "created", "green")
	d.hub.CreateApp(t, kit.Application(hubOnly.namespace, hubOnly.prefix+"created",
		settingsManifest(hubOnly.prefix+"created", "green"), kit.On(hubOnly.cluster), kit.Annotation("adopt", "true")))
	hubOnly.app("created").MustSettle(t, hubOnly.cluster)
	hubOnly.drifts(t, "created", "green")
	d.createHabitat(t, "new")
	for _, w := range []site{both, hubOnly} {
		w.works(t, "green")
	}
}

var habitats = schema.GroupVersionResource{Group: "habitat.sh", Version: "v1beta1", Resource: "habitats"}

// createHabitat creates a Habitat on the hub, and waits until it has the health of its StatefulSet, from
// the status of its Application: no Pod of it runs.
func (d *disaster) createHabitat(t *testing.T, name string) {
	t.Helper()
	habitat := fmt.Sprintf(`{"apiVersion": "habitat.sh/v1beta1", "kind": "Habitat", "metadata": {"name": %q, "namespace": "both"},
		"customVersion": "v1beta2", "spec": {"v1beta2": {"image": "example.com/web:1", "count": 1, "service": {"name": "web", "topology": "standalone"}}}}`, name)
	d.hub.Apply(t, habitat)
	started := time.Now()
	kit.Eventually(t, func() string {
		if conditions := fmt.Sprint(kit.Field(d.hub.Get(t, habitats, "both", name), "status", "conditions")); !strings.Contains(conditions, "InProgress") {
			return "its conditions are " + conditions
		}
		return ""
	})
	t.Logf("Habitat %s has its status after %s", name, time.Since(started).Round(time.Millisecond))
}

// A target is restored, and the hub went on: the objects become what the Applications say.
func (d *disaster) targetIsRestored(t *testing.T) {
	d.respawn(t)
	w := d.site(t, "east", "east", "target-", d.east)
	w.past(t)
	before := leases(t, d.east)
	copied := snapshot(t, d.east)
	w.later(t)
	renewed(t, d.east, before)
	restore(t, d.east, copied)
	started := time.Now()
	w.has(t, "changed", "blue")
	w.has(t, "created", "green")
	t.Logf("as the Applications say after %s", time.Since(started).Round(time.Millisecond))
	w.works(t, "blue")
}
