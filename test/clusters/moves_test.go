package clusters

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// An Application moves between three clusters, of which the hub is one.
// Sometimes it moves on, or back, before it has arrived. In each move an agent is killed at one of its requests: before
// it is sent, or after it was carried out and before its answer. Sometimes the user continues while the agent is down.
//
// At the end each object is on exactly one cluster, as the spec has it. It was on one all the time: none is deleted
// before it exists on another one, and the Deployment is available there. A value that one cluster assigned is on no
// other one. Applications that stay, and drift meanwhile, are repaired.
func TestMovedApplicationIsAlwaysOnSomeCluster(t *testing.T) {
	t.Parallel()
	rounds := 15
	const namespace = "moves"
	newNamespace(t, namespace, planes()...)
	seed := seedOf(t)
	j := &journey{random: rand.New(rand.NewPCG(seed, 0)), travellers: map[string]*traveller{}}
	for name, at := range map[string]*kit.Plane{"east": env.east, "west": env.west, application.LocalCluster: env.hub} {
		j.travellers[name] = newTraveller(t, name, at, namespace)
	}
	for name, tr := range j.travellers {
		j.residents = append(j.residents, newResident(t, tr, namespace, "on-"+name))
	}
	j.app = newApp(t, "east", namespace, "web", webManifest, webSchema)
	j.at = []string{"east"}
	j.arrive(t)
	for round := range rounds {
		j.round(t, round+1)
	}
	j.revive(t)
	j.arrive(t)
	j.move(t) // in each round it may have been sent back before it left
	t.Logf("%d of %d agents were killed at a request, the others at rest", j.killed, rounds)
	checkHistory(t, j.app, j.travellers)
	for _, each := range j.residents {
		each.check(t)
	}
	for name, tr := range j.travellers {
		if refused := tr.begin.Requests(t, kit.By(kit.AgentUser(name)), kit.In(namespace), isRefused); len(refused) > 0 {
			t.Errorf("the agent of %s tried what it may not: %s", name, kit.List(refused))
		}
	}
}

func isRefused(r kit.Request) bool { return r.Status.Code == http.StatusForbidden }

// resident is an Application that stays on its cluster, while its object drifts.
type resident struct {
	app

	home *traveller
	uid  any // of its object
}

func newResident(t *testing.T, home *traveller, namespace, name string) resident {
	t.Helper()
	r := resident{app: newSettings(t, home.spoke.Name, namespace, name), home: home}
	r.MustSettle(t, home.Name)
	r.uid = r.uidNow(t)
	return r
}

func (r resident) uidNow(t *testing.T) any {
	t.Helper()
	return kit.Field(r.home.plane.Get(t, kit.ConfigMaps, r.Namespace, settingsOf(r.app)), "metadata", "uid")
}

// drift changes the object as another client.
func (r resident) drift(t *testing.T) {
	t.Helper()
	r.home.plane.Change(t, kit.ConfigMaps, r.Namespace, settingsOf(r.app), drift(0))
}

// check waits until the object is repaired, and fails if it was replaced.
func (r resident) check(t *testing.T) {
	t.Helper()
	mustHave(t, kit.Timeout, r.home.plane, r.Namespace, settingsOf(r.app), keyOf(0), "right")
	if r.uidNow(t) != r.uid {
		t.Errorf("the object of %s is another one", r.app)
	}
}

// seedOf returns the seed of the test's random choices, and prints it: KRAKE_TEST_SEED
// repeats a run.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("KRAKE_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("KRAKE_TEST_SEED=%d", seed)
	return seed
}

// traveller is a cluster that takes part, with its agent behind proxies.
type traveller struct {
	*spoke

	begin  kit.Mark
	victim *proxy.Victim // the agent
}

func newTraveller(t *testing.T, name string, at *kit.Plane, namespace string) *traveller {
	t.Helper()
	arguments := []string{"--leader-elect=false"} // a killed agent is replaced at once
	tr := &traveller{spoke: enrol(t, name, at, []string{namespace}, arguments...), begin: at.Mark(t)}
	tr.victim = &proxy.Victim{Kill: func() { _ = tr.Kill() }} // if the kill fails, it continues
	tr.proxied(t, &tr.Target, at)
	if tr.Hub != "" {
		tr.proxied(t, &tr.Hub, env.hub)
	}
	kit.Must(t, tr.Start(t.Context()))
	return tr
}

// proxied puts a proxy between the agent and an API server.
func (tr *traveller) proxied(t *testing.T, file *string, to *kit.Plane) {
	t.Helper()
	p, err := proxy.Start(to.RESTConfig())
	kit.Must(t, err)
	t.Cleanup(p.Close)
	p.Intercept(tr.victim.Meet)
	tr.through(t, file, p)
}

// journey is the route of an Application.
type journey struct {
	app        app
	random     *rand.Rand
	travellers map[string]*traveller
	residents  []resident
	// at has the clusters where it may have objects; the last is its destination.
	at []string
	// down is the agent that was killed in an earlier round, and stays down until the
	// user's next step; empty for none.
	down   string
	killed int
}

// round moves the Application, and kills an agent.
func (j *journey) round(t *testing.T, round int) {
	t.Helper()
	began, way := time.Now(), j.way()
	victim := j.victim(way)
	call, sent, hold := 1+j.random.IntN(8), j.random.IntN(2) == 0, j.random.IntN(3) == 0
	tr := j.travellers[victim]
	death := tr.victim.Arm(call, sent)
	for _, each := range j.residents {
		each.drift(t)
	}
	for i, next := range way {
		if i > 0 {
			time.Sleep(time.Duration(j.random.IntN(400)) * time.Millisecond) // the user pauses; this waits for nothing
		}
		j.app.Annotate(t, "cluster", next)
		j.at = append(j.at, next)
	}
	j.revive(t)
	j.awaitDeath(t, death)
	killed := tr.victim.Disarm() != ""
	if killed {
		j.killed++
		j.down = victim
	}
	if !killed || !hold {
		j.revive(t)
		j.arrive(t)
	}
	if !killed {
		kit.Must(t, errors.Join(tr.Kill(), tr.Begin())) // it has no work
	}
	t.Logf("round %d: to %v, agent of %s killed at its call %d (met: %t, sent: %t, stays down: %t), %s",
		round, way, victim, call, killed, sent, hold && killed, time.Since(began).Round(time.Millisecond))
}

// move moves the Application to another cluster, with all agents alive.
func (j *journey) move(t *testing.T) {
	t.Helper()
	next := j.other(j.at[0])
	j.app.Annotate(t, "cluster", next)
	j.at = append(j.at, next)
	j.arrive(t)
}

// way returns the next clusters of the Application: another one, or two in turn,
// perhaps back, before it has arrived.
func (j *journey) way() []string {
	first := j.other(j.at[len(j.at)-1])
	if j.random.IntN(3) > 0 {
		return []string{first}
	}
	return []string{first, j.other(first)}
}

// other chooses another cluster.
func (j *journey) other(than string) string {
	names := slices.Sorted(maps.Keys(j.travellers))
	names = slices.DeleteFunc(names, func(name string) bool { return name == than })
	return names[j.random.IntN(len(names))]
}

// victim chooses an agent that takes part in the move.
func (j *journey) victim(way []string) string {
	involved := slices.Sorted(slices.Values(append(slices.Clone(j.at), way...)))
	involved = slices.DeleteFunc(slices.Compact(involved), func(name string) bool { return name == j.down })
	return involved[j.random.IntN(len(involved))]
}

// revive starts the killed agent.
func (j *journey) revive(t *testing.T) {
	t.Helper()
	if j.down == "" {
		return
	}
	kit.Must(t, j.travellers[j.down].Begin())
	j.down = ""
}

// awaitDeath waits until the agent is killed, or the Application has arrived.
func (j *journey) awaitDeath(t *testing.T, death <-chan struct{}) {
	t.Helper()
	kit.Eventually(t, func() string {
		select {
		case <-death:
			return ""
		default:
			return j.app.SettledOn(t, j.at[len(j.at)-1])
		}
	})
}

// arrive waits until the Application is on its last cluster, and checks that it is on
// no other.
func (j *journey) arrive(t *testing.T) {
	t.Helper()
	end := j.at[len(j.at)-1]
	kit.Eventually(t, func() string {
		for _, tr := range j.travellers {
			tr.mustLive(t)
		}
		return j.app.SettledOn(t, end)
	})
	j.at = []string{end}
	checkDump(t, j.app, end, j.travellers)
}
