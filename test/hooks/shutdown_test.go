package hooks

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// backend is a program behind the Service shutdown of an Application. It answers the
// shutdown request with a function that the test sets.
type backend struct {
	does func(w http.ResponseWriter, r *http.Request)

	mu        sync.Mutex
	calls     int
	said      time.Time // when it began to confirm
	confirmed time.Time // when the agent accepted the confirmation
	under     sync.WaitGroup
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.calls++
	does := b.does
	b.mu.Unlock()
	does(w, r)
}

func (b *backend) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// turn replaces the function of the program.
func (b *backend) turn(does func(http.ResponseWriter, *http.Request)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.does = does
}

// put runs a program for an Application, which ends with the test.
func (s *spoke) put(t *testing.T, namespace string, does func(http.ResponseWriter, *http.Request)) *backend {
	t.Helper()
	b := &backend{does: does}
	s.services.put(namespace, b)
	t.Cleanup(func() {
		b.under.Wait()
		s.services.checkStrays(t)
	})
	return b
}

// confirms shuts down at once, and confirms with what its container has.
func (b *backend) confirms(t *testing.T, p pod, to *spoke) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		b.mu.Lock()
		if b.said.IsZero() {
			b.said = time.Now()
		}
		b.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		b.under.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), kit.Timeout)
			defer cancel()
			err := p.insist(ctx, to, p.says(application.Shutdown))
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.confirmed.IsZero() && err == nil {
				b.confirmed = time.Now()
			}
			if err != nil {
				t.Errorf("confirm the shutdown: %v", err)
			}
		})
	}
}

// These programs do not confirm.
func heard(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

func fails(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "canary-of-a-program", http.StatusInternalServerError)
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// whole lists all objects of the Application with the hook shutdown.
var whole = []string{"deployment web", "service shutdown", "secret web-krake-shutdown-secret-certs", "secret web-krake-shutdown-secret-token"}

// newWeb makes an Application with the hook in its own namespace, and runs a program
// for it.
func newWeb(t *testing.T, wanted settings, does func(http.ResponseWriter, *http.Request)) (app, pod, *backend) {
	t.Helper()
	namespace := newNamespace(t)
	b := env.local.put(t, namespace, does)
	a := newApp(t, namespace, "web", web, settings{"hooks": "shutdown", "shutdown-grace-time": "1s"}.and(wanted))
	a.MustBe(t, application.StateRunning)
	p := mustStartPod(t, env.hub, namespace, "web")
	if does == nil {
		b.turn(b.confirms(t, p, env.local))
	}
	return a, p, b
}

// mustKeep fails unless the Application still has all its objects.
func (a app) mustKeep(t *testing.T, at *kit.Plane) {
	t.Helper()
	left := a.objects(t, at)
	for _, each := range whole {
		if !slices.Contains(left, each) {
			t.Errorf("%s has %v, and not %s", a, left, each)
		}
	}
}

// checkPatience fails if an agent has deleted anything in a namespace before the
// Application began to confirm. The API servers use the clock of the test.
func checkPatience(t *testing.T, m kit.Mark, namespace string, said time.Time) {
	t.Helper()
	deleted := 0
	for _, l := range worked(t, m, namespace) {
		if l.Verb != "delete" {
			continue
		}
		deleted++
		if l.Received.Before(said) {
			t.Errorf("deleted %s before the Application has confirmed: %s", said.Sub(l.Received), l)
		}
	}
	if deleted == 0 {
		t.Error("nothing was deleted: nothing was looked at")
	}
}

// A deleted Application is first asked to shut down, once. None of its objects is
// deleted before it confirms.
func TestShutdownConfirmed(t *testing.T) {
	t.Parallel()
	begin := env.hub.Mark(t)
	a, p, b := newWeb(t, settings{"shutdown-grace-time": "1h"}, heard)
	p.mustAnswer(t, env.local, "confirmed before anybody has asked", p.says(application.Shutdown), http.StatusOK)
	p.mustAnswer(t, env.local, "tried again before anybody has asked", p.says(application.Shutdown).to("retry"), http.StatusBadRequest)
	if complaint := a.Is(t, application.StateRunning); complaint != "" {
		t.Error(complaint)
	}
	a.Delete(t)
	a.MustBe(t, application.StateWaiting)
	kit.Eventually(t, func() string {
		if b.count() == 0 {
			return "nobody has asked it to shut down"
		}
		return ""
	})
	a.mustKeep(t, env.hub)
	p.mustAnswer(t, env.local, "tried again while it is asked", p.says(application.Shutdown).to("retry"), http.StatusBadRequest)
	said := time.Now()
	got := p.mustAnswer(t, env.local, "confirmed", p.says(application.Shutdown), http.StatusOK)
	if got.state != application.StateReady {
		t.Errorf("it is %s, want %s", got.state, application.StateReady)
	}
	a.mustGo(t, env.hub)
	checkPatience(t, begin, a.Namespace, said)
	if b.count() != 1 {
		t.Errorf("it was asked %d times, want once", b.count())
	}
}

// How an unconfirmed shutdown ends, by the program's behaviour and the Application's
// strategy, and what the status reports.
func TestShutdownNotConfirmed(t *testing.T) {
	t.Parallel()
	late := func(t *testing.T, _ app, p pod, _ *backend) {
		t.Helper()
		p.mustAnswer(t, env.local, "the late token", p.says(application.Shutdown), http.StatusOK)
	}
	nothing := func(*testing.T, app, pod, *backend) {}
	for name, row := range map[string]struct {
		does     func(http.ResponseWriter, *http.Request)
		settings settings
		// least is the smallest number of requests; says is in the status after the
		// last attempt, which happens unless it is empty.
		least int
		says  string
		then  func(t *testing.T, a app, p pod, b *backend)
		// left has the objects that remain at the end.
		left []string
	}{
		"it hears and says nothing; the token comes late": {does: heard, least: 1, says: "not confirmed within 1s", then: late},
		"it fails, and is asked once more; then retry by the endpoint": {
			does: fails, settings: settings{"shutdown-retry-count": "1"}, least: 2, says: "answers 500",
			then: func(t *testing.T, _ app, p pod, b *backend) {
				t.Helper()
				b.turn(b.confirms(t, p, env.local))
				got := p.mustAnswer(t, env.local, "retry", p.says(application.Shutdown).to("retry"), http.StatusOK)
				if got.state != application.StateWaiting {
					t.Errorf("it is %s, want %s", got.state, application.StateWaiting)
				}
			},
		},
		"given up; then the hook is taken off": {
			does: fails, least: 1, says: "answers 500",
			then: func(t *testing.T, a app, _ pod, _ *backend) { t.Helper(); a.Annotate(t, "hooks", "") },
		},
		"given up; then it is forced": {
			does: fails, least: 1, says: "answers 500", left: whole,
			then: func(t *testing.T, a app, _ pod, _ *backend) { t.Helper(); a.Annotate(t, "force-delete", "true") },
		},
		"it hangs, twice, and is deleted anyway": {
			does: hangs, settings: settings{"shutdown-failure-strategy": "delete", "shutdown-retry-count": "1"}, least: 2, then: nothing,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, p, b := newWeb(t, row.settings, row.does)
			a.Delete(t)
			if row.says != "" {
				a.MustBe(t, application.StateDegraded)
				a.Says(t, application.StalledCondition, row.says)
				a.mustKeep(t, env.hub)
			}
			if row.says != "" && b.count() < row.least {
				t.Errorf("it was asked %d times, want %d at least", b.count(), row.least)
			}
			row.then(t, a, p, b)
			a.mustGo(t)
			if b.count() < row.least {
				t.Errorf("it was asked %d times, want %d at least", b.count(), row.least)
			}
			left := a.objects(t, env.hub)
			slices.Sort(left)
			if want := slices.Sorted(slices.Values(row.left)); !slices.Equal(left, want) {
				t.Errorf("of it there is %v, want %v", left, want)
			}
		})
	}
}
