package faults

import (
	"context"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/kit"
)

var songs = definition{group: "songs.krake-tests.example", kind: "Song", plural: "songs"}

// A kind is defined after the Application, removed while ten Applications use it, and defined again in another scope
// and, with another storage version, in the old one. Meanwhile the agent calls rarely, and all other objects are there.
func TestKindThatComesAndGoesBlocksNothingElse(t *testing.T) {
	t.Parallel()
	const many = 10
	l := newLane(t, "kinds")
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

	l.bounded(t, "before the kind is defined", many)
	kit.Must(t, songs.define(t.Context(), "Namespaced"))
	kit.Must(t, l.await(t.Context(), all))

	kit.Must(t, songs.undefine(t.Context()))
	kit.Must(t, l.await(t.Context(), songs.undefined))
	l.bounded(t, "after the kind is gone", many)

	kit.Must(t, songs.define(t.Context(), "Cluster"))
	l.bounded(t, "while the kind is in no namespace", many)
	kit.Must(t, l.await(t.Context(), func(ctx context.Context) error {
		return each(apps, func(a *app) error { return a.complains(ctx) })
	}))

	kit.Must(t, songs.undefine(t.Context()))
	kit.Must(t, l.await(t.Context(), songs.undefined))
	kit.Must(t, songs.define(t.Context(), "Namespaced", "v2"))
	kit.Must(t, l.await(t.Context(), all))
	kit.Must(t, others(t.Context()))
	kit.Must(t, l.agent.revive())
}

// bounded counts all calls within twenty seconds, with so many Applications. A try and its status are three calls, and there
// may be two of them.
func (l *lane) bounded(t *testing.T, what string, many int) {
	t.Helper()
	const window = 20 * time.Second
	begin := l.proxy.Mark()
	kit.Must(t, sleep(t.Context(), window))
	calls := l.proxy.Since(begin)
	t.Logf("%s: %d calls in %s", what, len(calls), window)
	if most := 6 * many; len(calls) > most {
		t.Errorf("%s: %d calls in %s, want %d at most:\n%s", what, len(calls), window, most, lines(calls))
	}
	kit.Must(t, l.agent.revive())
}
