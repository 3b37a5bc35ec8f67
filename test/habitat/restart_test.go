package habitat

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The tests of this file stop and kill the controllers: they do not run in parallel
// with others.

// "A restart writes nothing when nothing differs", for Habitats of all kinds, also for
// invalid ones. A Habitat that is created later shows that the new process works.
func TestARestartWritesNothing(t *testing.T) {
	h := newHome(t)
	h.secret(t, "toml-of-db", "user.toml")
	h.create(t, habitats, service("web", 2, nil))
	h.create(t, habitats, service("db", 3, object{"updateStrategy": "OnDelete", "service": with("db", "leader", object{"configSecretName": "toml-of-db"})}))
	h.create(t, habitats, old("flat", 1))
	h.create(t, habitats, service("waits", 1, object{"service": with("waits", "leader", object{"configSecretName": "nowhere"})}))
	h.create(t, kit.ConfigMaps, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "habitat-taken"}})
	h.create(t, habitats, service("taken", 1, nil))
	h.mustRun(t, "web", "db", "flat")
	h.mustHavePeer(t, 6)
	h.awaitCalm(t)
	events := len(h.events(t, "Habitat", "waits", "SecretNotFound"))
	from := h.Mark(t)
	kit.Must(t, h.installation.StopHabitat())
	kit.Must(t, h.installation.StartHabitat(t.Context()))
	other := newHome(t)
	other.run(t, service("after", 1, nil))
	h.awaitCalm(t)
	// The controller does not watch ConfigMaps without its label. It tries to create one
	// to find out whether the name is taken, and the API server refuses.
	for _, made := range worked(t, from, h.namespace) {
		if made.IsAccepted() || made.Name() != "habitat-taken" {
			t.Errorf("nothing differs, and written was %s", made)
		}
	}
	if got := len(h.events(t, "Habitat", "waits", "SecretNotFound")); got != events {
		t.Errorf("what is known is told again: %d Events, want %d", got, events)
	}
}

// One of two replicas acts. At its end it releases the Lease; when it is killed, the
// Lease expires. Then the other one continues, and no work in between is lost.
func TestReplicas(t *testing.T) {
	kit.Long(t, "processes replace each other")
	h := newHome(t)
	h.run(t, service("web", 2, nil))
	for _, c := range []struct {
		how string
		end func(...int) error
	}{{"stopped", h.installation.StopHabitat}, {"killed", h.installation.KillHabitat}} {
		from := h.Mark(t)
		h.edit(t, "web", `{"count": 3}`)
		h.mustRun(t, "web")
		h.awaitCalm(t)
		acts := h.leader(t, from)
		peer := h.mustHavePeer(t, 3)
		ended := time.Now()
		kit.Must(t, c.end(acts))
		h.deletePod(t, peer)
		h.edit(t, "web", `{"count": 2}`)
		h.eventuallyField(t, 2, kit.StatefulSets, "web", "spec", "replicas")
		h.mustHavePeer(t, 2)
		t.Logf("the leader was %s, and an edit and a new peer were carried out by the other one after %s", c.how, time.Since(ended).Round(time.Millisecond))
		h.mustRun(t, "web")
		h.checkOneActs(t, from, ended)
		kit.Must(t, h.installation.StartHabitat(t.Context()))
	}
}

// wrote returns the writes of the controllers in the namespace, except Events.
func (h home) wrote(t *testing.T, from kit.Mark) []kit.Request {
	t.Helper()
	isWrite := func(l kit.Request) bool { return l.IsWrite() && l.Object.Resource != "events" }
	return from.Requests(t, kit.By(kit.HabitatUser), kit.In(h.namespace), isWrite)
}

// leader returns the process that was the last to write in the namespace since the
// mark.
func (h home) leader(t *testing.T, from kit.Mark) int {
	t.Helper()
	made := h.wrote(t, from)
	if len(made) == 0 {
		t.Fatal("neither process has written anything")
	}
	for index := range processes {
		if made[len(made)-1].IsBy(h.installation.HabitatCredential(index)) {
			return index
		}
	}
	t.Fatalf("somebody else has written %s", made[len(made)-1])
	return 0
}

// checkOneActs fails unless one process made all writes before the other one was ended,
// and the other one all writes after that.
func (h home) checkOneActs(t *testing.T, from kit.Mark, ended time.Time) {
	t.Helper()
	credentials := map[bool][]string{}
	for _, made := range h.wrote(t, from) {
		after := made.Received.After(ended)
		credentials[after] = append(credentials[after], made.Credentials()...)
	}
	before, after := slices.Compact(credentials[false]), slices.Compact(credentials[true])
	if len(before) != 1 || len(after) != 1 || before[0] == after[0] {
		t.Errorf("acted have %v, and then %v: want one, and then the other one", before, after)
	}
}

// story is the sequence of events in a namespace with Habitats, with the objects that
// must exist after each. The final state is compared as a whole.
type story []struct {
	what string
	do   func(t *testing.T, h home)
	is   func(t *testing.T, h home) (complaint string)
}

// newStory has all events after which the controllers write: late Secrets, edits of all
// kinds, deletions, and Pods that end.
func newStory() story {
	web := service("web", 2, object{"service": with("web", "standalone", object{"configSecretName": "web-config"})})
	db := service("db", 3, object{"updateStrategy": "OnDelete", "service": with("db", "leader", nil)})
	return story{
		{"two Habitats are created, a Secret is missing", func(t *testing.T, h home) {
			h.create(t, habitats, web)
			h.create(t, habitats, db)
		}, func(t *testing.T, h home) string {
			return h.isRunning(t, "db") + h.saysReason(t, "web", "SecretNotFound")
		}},
		{"the Secret is there", func(t *testing.T, h home) { h.secret(t, "web-config", "user.toml") },
			func(t *testing.T, h home) string { return h.isRunning(t, "web") }},
		{"both have another image", func(t *testing.T, h home) {
			h.edit(t, "web", `{"image": "registry.test/hab/web:2"}`)
			h.edit(t, "db", `{"image": "registry.test/hab/db:2"}`)
		}, func(t *testing.T, h home) string {
			return h.isRunning(t, "web") + h.isRunning(t, "db") + h.runs(t, "db", "registry.test/hab/db:2") + h.runs(t, "web", "registry.test/hab/web:2")
		}},
		{"the peer dies", func(t *testing.T, h home) {
			address, _ := h.peer(t)
			if peer, ok := h.running(t)[address]; ok {
				h.deletePod(t, peer)
			}
		}, func(t *testing.T, h home) string { return h.hasPeer(t, 5) }},
		{"somebody edits the Application, and the file", func(t *testing.T, h home) {
			h.patch(t, kit.ConfigMaps, "habitat-db", "hand", `{"metadata": {"labels": {"habitat-name": "other"}, "ownerReferences": null}}`)
			h.patch(t, kit.ConfigMaps, "peer-watch-file", "hand", `{"data": {"peer-watch-file": "192.0.2.1"}}`)
		}, func(t *testing.T, h home) string {
			return h.hasPeer(t, 5) + h.belongs(t, "db", h.get(t, habitats, "db").GetUID())
		}},
		{"one goes, and comes again", func(t *testing.T, h home) {
			h.delete(t, habitats, "web")
			h.mustGo(t, habitats, "web")
			h.create(t, habitats, web)
		}, func(t *testing.T, h home) string {
			return h.isRunning(t, "web") + h.belongs(t, "web", h.get(t, habitats, "web").GetUID()) + h.hasPeer(t, 5)
		}},
		{"all go", func(t *testing.T, h home) {
			h.delete(t, habitats, "web")
			h.delete(t, habitats, "db")
		}, func(t *testing.T, h home) string {
			for _, name := range []string{"habitat-web", "habitat-db", "habitat-peers", "peer-watch-file"} {
				if h.get(t, kit.ConfigMaps, name) != nil {
					return "there is still ConfigMap " + name
				}
			}
			return ""
		}},
		{"and come back", func(t *testing.T, h home) {
			h.create(t, habitats, web)
			h.create(t, habitats, db)
		}, func(t *testing.T, h home) string {
			return h.isRunning(t, "web") + h.isRunning(t, "db") + h.hasPeer(t, 5) +
				h.belongs(t, "web", h.get(t, habitats, "web").GetUID()) + h.belongs(t, "db", h.get(t, habitats, "db").GetUID())
		}},
	}
}

func (h home) saysReason(t *testing.T, name, reason string) string {
	t.Helper()
	if got := h.condition(t, name, "Accepted"); got.Reason != reason {
		return fmt.Sprintf("Habitat %s is %s (%s), want %s", name, got.Reason, got.Message, reason)
	}
	return ""
}

// runs returns a complaint unless all Pods of a Habitat have the image.
func (h home) runs(t *testing.T, name, image string) string {
	t.Helper()
	for _, pod := range h.pods(t, name) {
		if got := pod.Spec.Containers[0].Image; got != image {
			return fmt.Sprintf("Pod %s runs %s, want %s", pod.Name, got, image)
		}
	}
	return ""
}

func (h home) hasPeer(t *testing.T, pods int) string {
	t.Helper()
	_, complaint := h.chosen(t, pods)
	return complaint
}

// lane is a namespace with its own controller process, behind a proxy. A killed process
// is started again.
type lane struct {
	home

	proxy      *proxy.Proxy
	kubeconfig string

	victim *proxy.Victim // the process

	mu    sync.Mutex
	child *cluster.Process
}

func newLane(t *testing.T, from string) *lane {
	t.Helper()
	l := &lane{home: newHome(t)}
	l.victim = &proxy.Victim{Kill: func() {
		if err := l.kill(); err != nil {
			t.Error(err)
		}
	}}
	var err error
	l.proxy, err = proxy.Start(l.RESTConfig())
	kit.Must(t, err)
	l.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	kit.Must(t, l.proxy.WriteKubeconfig(from, l.kubeconfig))
	t.Cleanup(func() {
		kit.Must(t, l.kill())
		l.proxy.Close()
		l.hearLog(t, l.log())
		if t.Failed() {
			kit.ShowLog(l.log())
		}
	})
	return l
}

func (l *lane) log() string { return filepath.Join(l.Dir(), "lane-"+l.namespace+".log") }

// start starts the process unless it runs, and reports whether it did not run.
func (l *lane) start(ctx context.Context) (was bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.child != nil {
		return true, nil
	}
	process, err := l.installation.RunHabitat(ctx, "lane-"+l.namespace, l.kubeconfig, "--namespaces="+l.namespace)
	if err == nil {
		l.child = process.Process()
	}
	return false, err
}

func (l *lane) kill() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.child == nil {
		return nil
	}
	err := l.child.Kill()
	l.child = nil
	return err
}

// play plays the story, in which the process is killed once, and returns the number of
// its calls.
func (l *lane) play(t *testing.T, fatal int, sent bool) (met string, calls int) {
	t.Helper()
	l.proxy.Intercept(l.victim.Meet)
	l.victim.Arm(fatal, sent)
	from := l.Mark(t)
	for _, step := range newStory() {
		_, err := l.start(t.Context())
		kit.Must(t, err)
		step.do(t, l.home)
		complaint := await(kit.Timeout, func() string {
			was, err := l.start(t.Context())
			if kit.Must(t, err); !was {
				return "the process was down"
			}
			return step.is(t, l.home)
		})
		if complaint != "" {
			t.Fatalf("killed at call %d (%s, sent on: %v): after %s %s: %s", fatal, l.victim.Met(), sent, kit.Timeout, step.what, complaint)
		}
	}
	calls = l.proxy.Numbers()
	l.mustBeCarriedOut(t, "web")
	l.mustBeCarriedOut(t, "db")
	l.checkDeletions(t, from)
	for _, name := range []string{"web", "db"} {
		l.delete(t, habitats, name)
		l.mustGo(t, kit.ConfigMaps, "habitat-"+name)
	}
	l.mustGo(t, kit.ConfigMaps, "habitat-peers")
	l.delete(t, kit.Secrets, "web-config")
	return l.victim.Disarm(), calls
}

// checkDeletions fails if a Pod was deleted twice, or was not outdated: there is one
// update of the three Pods that are replaced at once.
func (l *lane) checkDeletions(t *testing.T, from kit.Mark) {
	t.Helper()
	var deleted []string
	for _, call := range from.Requests(t, kit.By(kit.HabitatUser), kit.In(l.namespace), isDeletion) {
		if call.Status.Code == http.StatusOK {
			deleted = append(deleted, call.Name())
		}
	}
	if slices.Sort(deleted); !slices.Equal(deleted, []string{"db-0", "db-1", "db-2"}) {
		t.Errorf("deleted were %v, want each of the outdated Pods once", deleted)
	}
}

// The process is killed in a scripted series, before or after a sample of its calls. At the end the state is as without a kill:
// nothing is missing, and no action that must not repeat was repeated.
func TestKilledAtAnyCall(t *testing.T) {
	kit.Long(t, "a process is killed at each call")
	const lanes, some = 4, 12
	kit.Must(t, shared.installation.StopHabitat())
	t.Cleanup(func() { kit.Must(t, shared.installation.StartHabitat(context.Background())) })
	from, err := shared.installation.HabitatKubeconfig(t.Context())
	kit.Must(t, err)
	first := newLane(t, from)
	_, calls := first.play(t, 0, false)
	type death struct {
		call int
		sent bool
	}
	var deaths []death
	for call := range calls {
		deaths = append(deaths, death{call + 1, false}, death{call + 1, true})
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(deaths), func(i, j int) { deaths[i], deaths[j] = deaths[j], deaths[i] })
	deaths = deaths[:min(some, len(deaths))]
	t.Logf("the story takes %d calls; seed %d", calls, seed)
	queue := make(chan death, len(deaths))
	for _, each := range deaths {
		queue <- each
	}
	close(queue)
	var mu sync.Mutex
	var met []string
	t.Run("lanes", func(t *testing.T) {
		for range lanes {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				l := newLane(t, from)
				for each := range queue {
					where, _ := l.play(t, each.call, each.sent)
					mu.Lock()
					if where != "" {
						met = append(met, fmt.Sprintf("%s (sent on: %v)", where, each.sent))
					}
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d deaths were planned, %d met:\n%s", len(deaths), len(met), strings.Join(met, "\n"))
	if len(met) < len(deaths)/2 {
		t.Errorf("of %d deaths only %d were met", len(deaths), len(met))
	}
}
