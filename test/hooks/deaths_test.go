package hooks

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// mortal is a cluster whose agent can be killed at one of its requests: before it is
// sent, or when it is carried out and nobody hears of it.
type mortal struct {
	*spoke

	victim *proxy.Victim // the agent
}

// mortalize puts proxies between an agent and its API servers; those of both are
// counted together. Afterwards its requests take the straight way again.
func mortalize(t *testing.T, s *spoke) *mortal {
	t.Helper()
	// An agent that cannot be killed goes on as if it had not been meant.
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
		if s == env.local { // others use it, and the test is over
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

// outlive waits until check finds nothing to complain about, and starts agents again
// that are killed meanwhile.
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

// trials has an agent killed at each of its calls in turn, until there are no more,
// and logs where: once before the call is sent, once after it is carried out. The
// play arms the agent when calls begin to count, and gives it.
func trials(t *testing.T, mortals []*mortal, play func(t *testing.T, call int, sent bool) *mortal) {
	t.Helper()
	played, begin := 0, time.Now()
	for call := 1; ; call++ {
		for _, sent := range []bool{call%2 == 0, call%2 != 0} {
			played++
			m := play(t, call, sent)
			met := m.victim.Disarm()
			outlive(t, mortals, func() string { return "" })
			if met == "" {
				t.Logf("%d trials in %s", played, time.Since(begin).Round(time.Second))
				return
			}
			t.Logf("agent of %s killed at call %d, %s (carried out: %t)", m.Name, call, met, sent)
		}
	}
}

// watched is a program that looks around whenever it is asked to shut down.
type watched struct {
	*backend

	app   app
	plane *kit.Plane
	gone  []string // what it missed before it had confirmed
}

// newWatched gives an Application a program on a cluster.
func newWatched(a app, s *spoke) *watched {
	w := &watched{backend: &backend{}, app: a, plane: s.plane}
	s.services.put(a.Namespace, w)
	return w
}

// do has the program do something when it has looked around.
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

// mustBeAsked waits for the end of what was begun, and fails unless the program was
// asked, while all was there.
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

// confirmLate has the Application confirm after all, until it is heard.
func (m *mortal) confirmLate(t *testing.T, mortals []*mortal, p pod) {
	t.Helper()
	outlive(t, mortals, func() string { return p.isHeard(t, m.spoke, application.Shutdown) })
}

// lane is a cluster of a test's own, whose agent is killed, with one Application
// after the other.
type lane struct {
	*mortal

	mortals []*mortal
}

// newLane enrols a cluster, with a namespace of its name.
func newLane(t *testing.T, name string) *lane {
	t.Helper()
	for _, each := range planes() {
		each.CreateNamespace(t, name)
	}
	m := mortalize(t, enrol(t, name, env.east, []string{name}))
	t.Cleanup(func() { m.services.checkStrays(t) })
	return &lane{m, []*mortal{m}}
}

// born makes an Application, and waits until it runs.
func (l *lane) born(t *testing.T, wanted wishes) (app, pod, *watched) {
	t.Helper()
	a := newApp(t, l.Name, "web", web, wishes{"cluster": l.Name}.and(wanted))
	outlive(t, l.mortals, func() string { return a.Is(t, application.StateRunning) })
	return a, mustStartPod(t, env.east, l.Name, "web"), newWatched(a, l.spoke)
}

// mustGo waits until the Application is gone, and fails if anything of it is left.
func (l *lane) mustGo(t *testing.T, a app) {
	t.Helper()
	outlive(t, l.mortals, func() string { return a.IsGone(t) })
	a.checkGone(t, env.east)
}

// An agent is killed at each of its calls, from the deletion of an Application on:
// before it, or when it is carried out and nobody hears of it. The Application is
// asked to shut down, and nothing of it goes before it says that it has; one that
// does not say so is kept, unless it is to be deleted anyway. What is to go goes, all
// of it.
func TestDeathsInDeletion(t *testing.T) {
	kit.Long(t, "an agent is killed at each call of a deletion")
	t.Parallel()
	l := newLane(t, "deaths")
	t.Run("it confirms", func(t *testing.T) {
		trials(t, l.mortals, func(t *testing.T, call int, sent bool) *mortal {
			t.Helper()
			a, p, w := l.born(t, wishes{"hooks": "shutdown", "shutdown-grace-time": "1h"})
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
			wanted := wishes{"hooks": "shutdown", "shutdown-grace-time": "1s", "shutdown-retry-count": "1"}
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

// The same from when an Application says that its work is done: if it was told that
// it was heard, it goes; and it says so until it is.
func TestDeathsInCompletion(t *testing.T) {
	kit.Long(t, "an agent is killed at each call of a completion")
	t.Parallel()
	l := newLane(t, "completion")
	trials(t, l.mortals, func(t *testing.T, call int, sent bool) *mortal {
		t.Helper()
		a, p, w := l.born(t, wishes{"hooks": "complete,shutdown", "shutdown-grace-time": "1h"})
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
