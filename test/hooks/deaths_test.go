package hooks

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// mortal is a cluster whose agent can be killed at one of its requests: before it is
// sent, or after it was carried out and before its answer.
type mortal struct {
	*spoke

	victim *proxy.Victim // the agent
}

// mortalize puts a proxy in front of each API server of an agent, with a common count
// of calls. Its cleanup removes the proxies.
func mortalize(t *testing.T, s *spoke) *mortal {
	t.Helper()
	// If the kill fails, the agent continues as if it had not been planned.
	m := &mortal{spoke: s, victim: &proxy.Victim{Kill: func() { _ = s.Kill() }}}
	target, hub := s.Target, s.Hub
	kit.Must(t, s.Kill())
	m.proxied(t, &s.Target, s.plane)
	if s.Hub != "" {
		m.proxied(t, &s.Hub, env.hub)
	}
	t.Cleanup(func() {
		kit.Must(t, s.Kill())
		s.Target, s.Hub = target, hub
		if s == env.local { // other tests use it, and this test is over
			kit.Must(t, s.Start(context.Background()))
		}
	})
	kit.Must(t, s.Start(t.Context()))
	return m
}

func (m *mortal) proxied(t *testing.T, file *string, to *kit.Plane) {
	t.Helper()
	p, err := proxy.Start(to.RESTConfig())
	kit.Must(t, err)
	t.Cleanup(p.Close)
	p.Intercept(m.victim.Meet)
	through(t, file, p)
}

// outlive waits until check returns no complaint, and restarts agents that are killed
// meanwhile.
func outlive(t *testing.T, mortals []*mortal, check func() string) {
	t.Helper()
	kit.Eventually(t, func() string {
		for _, m := range mortals {
			if m.victim.Met() != "" && m.Process() == nil {
				kit.Must(t, m.Begin())
			}
		}
		return check()
	})
}

// trials kills an agent at some of its calls, from the first to the last, and logs them: before the call is sent, or
// after it is carried out. The play arms the agent when calls begin to count, and returns it.
func trials(t *testing.T, mortals []*mortal, play func(t *testing.T, call int, sent bool) *mortal) {
	t.Helper()
	const stride = 3 // at most, from one call to the next
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	played := 0
	for call := 1 + random.IntN(2); ; call += 1 + random.IntN(stride) {
		sent := random.IntN(2) == 0
		played++
		m := play(t, call, sent)
		met := m.victim.Disarm()
		outlive(t, mortals, func() string { return "" })
		if met == "" {
			t.Logf("%d trials, of seed %d", played, seed)
			return
		}
		t.Logf("agent of %s killed at call %d, %s (carried out: %t)", m.Name, call, met, sent)
	}
}

// watched is a program that records the existing objects whenever it is asked to shut
// down.
type watched struct {
	*backend

	app   app
	plane *kit.Plane
	gone  []string // what was missing before it had confirmed
}

// newWatched runs a program for an Application on a cluster.
func newWatched(a app, s *spoke) *watched {
	w := &watched{backend: &backend{}, app: a, plane: s.plane}
	s.services.put(a.Namespace, w)
	return w
}

// do sets what the program does after it has recorded the objects.
func (w *watched) do(t *testing.T, does func(http.ResponseWriter, *http.Request)) {
	w.turn(func(writer http.ResponseWriter, r *http.Request) {
		left := w.app.objects(t, w.plane)
		w.mu.Lock()
		for _, each := range whole {
			if w.confirmed.IsZero() && !slices.Contains(left, each) {
				w.gone = append(w.gone, each)
			}
		}
		w.mu.Unlock()
		does(writer, r)
	})
}

// mustBeAsked waits for the end of running requests, and fails unless the program was
// asked while all objects existed.
func (w *watched) mustBeAsked(t *testing.T) {
	t.Helper()
	w.under.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == 0 {
		t.Error("nobody has asked it to shut down")
	}
	if len(w.gone) > 0 {
		t.Errorf("when it was asked to shut down, it had no more %v", w.gone)
	}
}

// confirmLate sends the Application's confirmation until it is accepted.
func (m *mortal) confirmLate(t *testing.T, mortals []*mortal, p pod) {
	t.Helper()
	outlive(t, mortals, func() string { return p.isHeard(t, m.spoke, application.Shutdown) })
}

// lane is a cluster for one test, whose agent is killed with one Application after
// another.
type lane struct {
	*mortal

	mortals []*mortal
}

// newLane enrols a cluster, with a namespace of the same name.
func newLane(t *testing.T, name string) *lane {
	t.Helper()
	for _, each := range planes() {
		each.CreateNamespace(t, name)
	}
	m := mortalize(t, enrol(t, name, env.east, []string{name}))
	t.Cleanup(func() { m.services.checkStrays(t) })
	return &lane{m, []*mortal{m}}
}

// born creates an Application, and waits until it runs.
func (l *lane) born(t *testing.T, wanted settings) (app, pod, *watched) {
	t.Helper()
	a := newApp(t, l.Name, "web", web, settings{"cluster": l.Name}.and(wanted))
	outlive(t, l.mortals, func() string { return a.Is(t, application.StateRunning) })
	return a, mustStartPod(t, env.east, l.Name, "web"), newWatched(a, l.spoke)
}

// mustGo waits until the Application is gone, and fails if any of its objects remains.
func (l *lane) mustGo(t *testing.T, a app) {
	t.Helper()
	outlive(t, l.mortals, func() string { return a.IsGone(t) })
	a.checkGone(t, env.east)
}

// An agent is killed at some of its calls after the deletion of an Application: before
// the call, or after it was carried out. The Application is asked to shut down, and no
// object is deleted before it confirms. Without a confirmation it stays, unless its
// strategy is to delete anyway. At the end, no object that should be deleted remains.
func TestDeathsInDeletion(t *testing.T) {
	t.Parallel()
	l := newLane(t, "deaths")
	t.Run("it confirms", func(t *testing.T) {
		trials(t, l.mortals, func(t *testing.T, call int, sent bool) *mortal {
			t.Helper()
			a, p, w := l.born(t, settings{"hooks": "shutdown", "shutdown-grace-time": "1h"})
			w.do(t, w.confirms(t, p, l.spoke))
			begin := env.east.Mark(t)
			l.victim.Arm(call, sent)
			a.Delete(t)
			l.mustGo(t, a)
			w.mustBeAsked(t)
			checkPatience(t, begin, l.Name, w.said)
			return l.mortal
		})
	})
	t.Run("it does not", func(t *testing.T) {
		trials(t, l.mortals, func(t *testing.T, call int, sent bool) *mortal {
			t.Helper()
			wanted := settings{"hooks": "shutdown", "shutdown-grace-time": "1s", "shutdown-retry-count": "1"}
			anyway := call%3 == 0
			if anyway {
				wanted["shutdown-failure-strategy"] = "delete"
			}
			a, p, w := l.born(t, wanted)
			w.do(t, fails)
			begin, said := env.east.Mark(t), time.Now().Add(time.Second) // the first attempt alone takes longer
			l.victim.Arm(call, sent)
			a.Delete(t)
			if !anyway {
				outlive(t, l.mortals, func() string { return a.Is(t, application.StateDegraded) })
				a.mustKeep(t, env.east)
				l.victim.Disarm()
				said = time.Now()
				l.confirmLate(t, l.mortals, p)
			}
			l.mustGo(t, a)
			checkPatience(t, begin, l.Name, said)
			w.mustBeAsked(t)
			return l.mortal
		})
	})
}

// The same for kills after an Application reports its completion. If the agent accepted
// the report, the Application is deleted; it repeats the report until then.
func TestDeathsInCompletion(t *testing.T) {
	t.Parallel()
	l := newLane(t, "completion")
	trials(t, l.mortals, func(t *testing.T, call int, sent bool) *mortal {
		t.Helper()
		a, p, w := l.born(t, settings{"hooks": "complete,shutdown", "shutdown-grace-time": "1h"})
		w.do(t, hangs)
		l.victim.Arm(call, sent)
		outlive(t, l.mortals, func() string { return p.isHeard(t, l.spoke, application.Complete) })
		l.mustGo(t, a)
		if w.count() > 0 {
			t.Error("it was asked to shut down, though it has said that its work is done")
		}
		return l.mortal
	})
}
