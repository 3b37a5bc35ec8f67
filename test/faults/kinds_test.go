package faults

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/kit"
)

var songs = definition{group: "songs.krake-tests.example", kind: "Song", plural: "songs"}

// A kind is removed with its objects and defined anew with another storage version, while another client
// changes the objects all the time.
func TestKindIsDefinedAnewWithAnotherStorageVersionWhileItsObjectsDrift(t *testing.T) {
	kit.Long(t, "kinds come and go")
	t.Parallel()
	// Deletions with the kind, and changes by the client, count as fights, whose pause is at most a minute.
	const late = 30*time.Second + time.Minute
	scenes := definition{group: "scenes.krake-tests.example", kind: "Scene", plural: "scenes"}
	l := newLane(t, "storage")
	kit.Must(t, scenes.grant(t.Context()))
	kit.Must(t, scenes.define(t.Context(), "Namespaced"))
	apps := l.newApps(10)
	kit.Must(t, each(apps, func(a *app) error {
		return a.create(t.Context(), []object{scenes.object(a, ""), a.configMap("1")})
	}))
	right := func(ctx context.Context) error {
		return each(apps, func(a *app) error {
			live, err := get(ctx, scenes.resource(), types.NamespacedName{Namespace: a.Namespace, Name: a.Name + "-scenes"})
			if err != nil {
				return err
			}
			if title := kit.Field(live, "spec", "title"); title != "one" {
				return fmt.Errorf("the title of %s is %v", a, title)
			}
			return nil
		})
	}
	l.within(t, "the kind is defined", late, right)
	for _, versions := range [][]string{{"v2"}, nil, {"v2", "v3"}} {
		drifted := scenes.drift(t, apps)
		kit.Must(t, scenes.undefine(t.Context()))
		kit.Must(t, l.await(t.Context(), scenes.undefined))
		kit.Must(t, scenes.define(t.Context(), "Namespaced", versions...))
		l.within(t, fmt.Sprintf("the kind is defined anew, with the further versions %v,", versions), late, func(ctx context.Context) error {
			return each(apps, func(a *app) error { return scenes.present(ctx, a) })
		})
		before := drifted.changes.Load()
		kit.Must(t, sleep(t.Context(), 2*time.Second))
		drifted.stop()
		if drifted.changes.Load() == before {
			t.Error("nothing has drifted with the new definition")
		}
		l.within(t, "the drift has ended", late, right)
	}
}

// drifting are objects that another client changes continuously.
type drifting struct {
	changes atomic.Int64
	stop    context.CancelFunc
}

func (d definition) drift(t *testing.T, apps []*app) *drifting {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	changing := &drifting{stop: stop}
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			a := apps[i%len(apps)]
			patch := fmt.Sprintf(`{"spec": {"title": "theirs %d"}}`, i)
			if change(ctx, d.resource(), types.NamespacedName{Namespace: a.Namespace, Name: a.Name + "-" + d.plural}, patch) == nil {
				changing.changes.Add(1) // at times the objects are gone
			}
			_ = sleep(ctx, 20*time.Millisecond)
		}
	}()
	return changing
}

// Threat A47 of the security specification: a kind is defined after the Application, removed while ten
// Applications use it, and defined again in another scope and in the old one.
func TestKindThatComesAndGoesBlocksNothingElse(t *testing.T) {
	kit.Long(t, "kinds come and go")
	t.Parallel()
	const (
		many   = 10
		late   = 30 * time.Second // from the definition of a kind until the object exists
		window = 30 * time.Second // in which calls are counted
		most   = 10               // calls in a minute for an Application
	)
	l := newLane(t, "a47")
	l.proxy.Intercept(nil)
	kit.Must(t, songs.grant(t.Context()))
	apps := l.newApps(many)
	kit.Must(t, each(apps, func(a *app) error {
		return a.create(t.Context(), []object{songs.object(a, ""), a.configMap("1")})
	}))
	others := func(ctx context.Context) error {
		return each(apps, func(a *app) error { return a.check(ctx, []object{a.configMap("1")}) })
	}
	kit.Must(t, l.await(t.Context(), others))
	all := func(ctx context.Context) error {
		return each(apps, func(a *app) error { return songs.present(ctx, a) })
	}

	l.bounded(t, "before the kind is defined", window, most*many)
	kit.Must(t, songs.define(t.Context(), "Namespaced"))
	l.within(t, "the kind is defined", late, all)

	kit.Must(t, songs.undefine(t.Context()))
	kit.Must(t, l.await(t.Context(), songs.undefined))
	l.bounded(t, "after the kind is gone", window, most*many)

	kit.Must(t, songs.define(t.Context(), "Cluster"))
	l.bounded(t, "while the kind is in no namespace", window, most*many)
	kit.Must(t, l.await(t.Context(), func(ctx context.Context) error {
		return each(apps, func(a *app) error { return a.complains(ctx) })
	}))

	kit.Must(t, songs.undefine(t.Context()))
	kit.Must(t, l.await(t.Context(), songs.undefined))
	kit.Must(t, songs.define(t.Context(), "Namespaced"))
	l.within(t, "the kind is defined anew", late, all)
	kit.Must(t, others(t.Context()))
	kit.Must(t, l.agent.revive())
}

// within waits for a condition that must hold within a time, and reports how long it
// took.
func (l *lane) within(t *testing.T, what string, most time.Duration, check func(context.Context) error) {
	t.Helper()
	start := time.Now()
	kit.Must(t, l.await(t.Context(), check))
	took := time.Since(start)
	t.Logf("%s after %s: all as it should be", what, took.Round(100*time.Millisecond))
	if took > most {
		t.Errorf("%s: %s until all was as it should be, want %s at most", what, took, most)
	}
}

// bounded counts all calls within a time.
func (l *lane) bounded(t *testing.T, what string, window time.Duration, mostInAMinute int) {
	t.Helper()
	begin := l.proxy.Mark()
	kit.Must(t, sleep(t.Context(), window))
	calls := l.proxy.Since(begin)
	t.Logf("%s: %d calls in %s", what, len(calls), window)
	if most := float64(mostInAMinute) * window.Minutes(); float64(len(calls)) > most {
		t.Errorf("%s: %d calls in %s, want %.0f at most:\n%s", what, len(calls), window, most, lines(calls))
	}
	kit.Must(t, l.agent.revive())
}
