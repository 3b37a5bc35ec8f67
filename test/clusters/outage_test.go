package clusters

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	// crowd is how many Applications drift while the hub is down, keys how often each:
	// fifty drifts in all, and no history is full.
	crowd = 10
	keys  = 5
)

// absences are the ways in which an API server can be unreachable.
var absences = map[string]func(*installation.Wire) error{
	"refusing":   func(w *installation.Wire) error { w.Cut(); return nil },
	"swallowing": (*installation.Wire).Silence,
}

// quickLease are flags for a short Lease, for which a killed agent's successor waits.
func quickLease() []string {
	return []string{"--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms"}
}

// The hub is unreachable. Its address refuses connections, or drops all
// packets. The agent still repairs every drift, and each Application's history shows the repairs when the hub is back.
// Changes by a user are then carried out. An agent that starts without its hub does nothing, and in particular
// deletes nothing.
func TestAgentWithoutItsHubRepairsAndReportsAfterwards(t *testing.T) {
	t.Parallel()
	for name, leave := range absences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newOutage(t, name).run(t, leave)
		})
	}
}

// outage is a time without a hub, for the agents of two clusters.
type outage struct {
	namespace string
	duration  time.Duration
	wire      *installation.Wire
	// steady runs all the time, fresh is started while the hub is unreachable.
	steady, fresh *spoke
	apps          []app // of steady
	// edited and removed are Applications of steady that a user changes and deletes
	// meanwhile, and stale is one of fresh.
	edited, removed, stale app
}

func newOutage(t *testing.T, name string) *outage {
	t.Helper()
	o := &outage{namespace: "outage-" + name, duration: 15 * time.Second, wire: newWire(t, env.hub)}
	newNamespace(t, o.namespace, planes()...)
	o.steady = enrol(t, name+"-steady", env.east, []string{o.namespace}, quickLease()...)
	o.fresh = enrol(t, name+"-fresh", env.west, []string{o.namespace}, quickLease()...)
	for _, s := range []*spoke{o.steady, o.fresh} {
		s.through(t, &s.Hub, o.wire)
		kit.Must(t, s.Start(t.Context()))
	}
	for i := range crowd {
		o.apps = append(o.apps, newSettings(t, o.steady.Name, o.namespace, fmt.Sprintf("app-%d", i)))
	}
	o.edited, o.removed = newSettings(t, o.steady.Name, o.namespace, "edited"), newSettings(t, o.steady.Name, o.namespace, "removed")
	o.stale = newSettings(t, o.fresh.Name, o.namespace, "stale")
	for _, each := range append([]app{o.edited, o.removed}, o.apps...) {
		each.MustSettle(t, o.steady.Name)
	}
	o.stale.MustSettle(t, o.fresh.Name)
	return o
}

// newSettings creates an Application of a ConfigMap, with its name and some values.
func newSettings(t *testing.T, cluster, namespace, name string) app {
	t.Helper()
	return newApp(t, cluster, namespace, name, settingsManifest("right"), "")
}

func settingsManifest(value string) string {
	var data []string
	for key := range keys {
		data = append(data, keyOf(key)+": "+value)
	}
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-settings}, data: {" + strings.Join(data, ", ") + "}}"
}

func keyOf(number int) string { return fmt.Sprintf("key%d", number) }

// drift returns a patch of one of the values.
func drift(key int) string { return fmt.Sprintf(`{"data": {%q: "wrong"}}`, keyOf(key)) }

func settingsOf(a app) string { return a.Name + "-settings" }

func (o *outage) run(t *testing.T, leave func(*installation.Wire) error) {
	kit.Must(t, leave(o.wire))
	began := time.Now()
	hub, east, west := env.hub.Mark(t), env.east.Mark(t), env.west.Mark(t)
	before := o.wire.Connections()

	o.restart(t)
	o.edited.Patch(t, fmt.Sprintf(`{"data": {%q: %q}}`, application.ManifestKey,
		strings.ReplaceAll(settingsManifest("edited"), "NAME", o.edited.Name)))
	o.removed.Delete(t)
	for key := range keys {
		o.driftAll(t, key)
		time.Sleep(time.Until(began.Add(o.duration * time.Duration(key+1) / keys))) // an outage takes time
	}
	o.checkAway(t, hub, east, west)
	tries, away := o.wire.Connections()-before, time.Since(began)
	if most := boundOf(away); tries > most {
		t.Errorf("%d connections were tried in %s, want at most %d", tries, away, most)
	}

	kit.Must(t, o.wire.Mend())
	returned := time.Now()
	o.awaitDone(t)
	t.Logf("the hub was away for %s, in which %d connections were tried; all was well after %s",
		away.Round(time.Millisecond), tries, time.Since(returned).Round(time.Millisecond))
	o.checkDone(t, east, west)
}

// boundOf limits the calls to a hub that is unreachable for a time. For each minute it
// allows ten for each Application and one each second for each agent. Each drift adds
// an Event, which client-go repeats every ten seconds.
func boundOf(away time.Duration) int64 {
	const apps, agents, drifts = crowd + 3, 2, crowd * keys
	return int64(away.Minutes()*10*apps + away.Seconds()*agents + (1+away.Seconds()/10)*drifts)
}

// restart kills the fresh agent, changes its object, and starts the agent again.
func (o *outage) restart(t *testing.T) {
	t.Helper()
	kit.Must(t, o.fresh.Kill())
	env.west.Change(t, kit.ConfigMaps, o.namespace, settingsOf(o.stale), drift(0))
	kit.Must(t, o.fresh.Begin())
}

// driftAll changes one value of each Application's object, and waits until all are
// repaired.
func (o *outage) driftAll(t *testing.T, key int) {
	t.Helper()
	var group errgroup.Group
	for _, each := range o.apps {
		group.Go(func() error {
			return env.east.TryChange(t.Context(), kit.ConfigMaps, o.namespace, settingsOf(each), drift(key))
		})
	}
	kit.Must(t, group.Wait())
	for _, each := range o.apps {
		mustHave(t, kit.Timeout, env.east, o.namespace, settingsOf(each), keyOf(key), "right")
	}
}

// checkAway checks the work without the hub: each drift was repaired once, nothing else
// was written, and the hub received nothing.
func (o *outage) checkAway(t *testing.T, hub, east, west kit.Mark) {
	t.Helper()
	if repairs := east.Requests(t, kit.By(kit.AgentUser(o.steady.Name)), isWork, kit.Request.IsAccepted); len(repairs) != crowd*keys {
		t.Errorf("%d writes for %d drifts: %s", len(repairs), crowd*keys, kit.List(repairs))
	}
	if deletions := east.Requests(t, kit.By(kit.AgentUser(o.steady.Name)), isDeletion); len(deletions) > 0 {
		t.Errorf("without a hub its agent deleted: %s", kit.List(deletions))
	}
	if writes := west.Requests(t, kit.By(kit.AgentUser(o.fresh.Name)), isWork); len(writes) > 0 {
		t.Errorf("an agent that was started without a hub wrote: %s", kit.List(writes))
	}
	for _, s := range []*spoke{o.steady, o.fresh} {
		s.mustLive(t)
		if heard := hub.Requests(t, kit.By(kit.AgentUser(s.Name)), kit.Request.IsWrite); len(heard) > 0 {
			t.Errorf("the hub was not away: %s", kit.List(heard))
		}
	}
	if !o.steady.IsReady(t.Context()) {
		t.Error("the agent is not ready, only because its hub is away")
	}
}

func isDeletion(r kit.Request) bool { return strings.HasPrefix(r.Verb, "delete") }

// awaitDone waits until the hub's changes are carried out, and the hub has all drifts.
func (o *outage) awaitDone(t *testing.T) {
	t.Helper()
	kit.Eventually(t, func() string {
		for _, each := range o.apps {
			if known := o.drifts(t, each); len(known) < keys {
				return fmt.Sprintf("of %s the hub knows only the drifts of %v", each, known)
			}
		}
		return o.undone(t)
	})
	// The agent that was killed has not released its Lease, which may outlast a short outage.
	kit.Eventually(t, func() string {
		if got := setting(t, env.west, o.namespace, settingsOf(o.stale), keyOf(0)); got != "right" {
			return fmt.Sprintf("the agent that was started again leaves %v", got)
		}
		return ""
	})
}

// undone returns the changes of users and other clients that are not handled yet.
func (o *outage) undone(t *testing.T) string {
	t.Helper()
	if got := setting(t, env.east, o.namespace, settingsOf(o.edited), keyOf(0)); got != "edited" {
		return fmt.Sprintf("the edited Application has %v", got)
	}
	if env.east.Get(t, kit.ConfigMaps, o.namespace, settingsOf(o.removed)) != nil {
		return "the object of the deleted Application is still there"
	}
	return ""
}

// drifts returns the paths of the reverted drifts in the Application's history.
func (o *outage) drifts(t *testing.T, of app) []string {
	t.Helper()
	var paths []string
	for _, drift := range of.status(t).Drifts {
		for _, field := range drift.Fields {
			if drift.Repaired == string(status.Reverted) {
				paths = append(paths, field.Path)
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// checkDone checks all work: each drift is in the history once, and only objects that a
// user deleted were deleted.
func (o *outage) checkDone(t *testing.T, east, west kit.Mark) {
	t.Helper()
	for _, each := range o.apps {
		var want []string
		for key := range keys {
			want = append(want, "data."+keyOf(key))
		}
		if diff := cmp.Diff(want, o.drifts(t, each)); diff != "" {
			t.Errorf("history of %s (-want +got):\n%s", each, diff)
		}
	}
	o.removed.MustGo(t)
	deletions := append(east.Requests(t, kit.By(kit.AgentUser(o.steady.Name)), isDeletion), west.Requests(t, kit.By(kit.AgentUser(o.fresh.Name)), isDeletion)...)
	if len(deletions) != 1 || deletions[0].Name() != settingsOf(o.removed) {
		t.Errorf("deletions, of which only that of %s is right: %s", settingsOf(o.removed), kit.List(deletions))
	}
}
