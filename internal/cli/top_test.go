package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

func TestTop(t *testing.T) {
	for file, arguments := range map[string][]string{"top.txt": nil, "top-all.txt": {"-A", "--once"}} {
		h := manyApps(t)
		h.put(driftedApp(t))
		h.golden(t, file, newTopCommand, arguments...)
	}
	if _, errOut, err := run(t, newHub(t), newTopCommand, "-A"); err != nil || errOut != "No Applications found\n" {
		t.Errorf("%q, %v", errOut, err)
	}
}

// The view fits the terminal. It is drawn at once, and again only if it changes.
func TestViewDraws(t *testing.T) {
	h := manyApps(t)
	e, out, _ := h.environment()
	now := noon
	e.now = func() time.Time { return now }
	v := screen{environment: e, scope: scope{}, known: known{}, height: func() int { return 5 }}
	step := func(why string, frames int, do func(context.Context) error) string {
		t.Helper()
		check.Must(t, do(t.Context()))
		drawn := strings.Split(out.String(), clearScreen)
		check.Equal(t, why+": times drawn", frames, len(drawn)-1)
		return drawn[len(drawn)-1]
	}
	changed := func(c change) func(context.Context) error {
		return func(ctx context.Context) error { return v.changed(ctx, c) }
	}
	first := step("what there is", 1, changed(change{listed: true, items: []item{itemOf(webApp(t)), itemOf(heldApp(t)), itemOf(created("a")), itemOf(created("b"))}}))
	if lines := strings.Split(first, "\n"); len(lines) != 5 || !strings.HasSuffix(lines[0], "  4 Applications") || !strings.HasPrefix(lines[2], "web ") || lines[4] != wrapLines {
		t.Errorf("%q", first)
	}
	step("nothing new", 1, v.looked)
	drifted := recorded(t, admitted(t, created("worse")), func(app *application.Application) {
		app.Status.Drifts = []application.Drift{rescaled(0, 9)}
	})
	step("much at once", 1, changed(change{items: []item{itemOf(drifted)}}))
	if third := step("its turn", 2, v.looked); !strings.HasPrefix(strings.Split(third, "\n")[2], "worse ") {
		t.Errorf("%q", third)
	}
	now = now.Add(time.Second)
	step("time goes on", 3, v.looked)
}

// Drawing does not read the heartbeats each time.
func TestViewSparesTheHub(t *testing.T) {
	h := manyApps(t)
	e, _, _ := h.environment()
	now := noon
	e.now = func() time.Time { return now }
	v := screen{environment: e, known: known{}, height: func() int { return height(e.Out) }}
	for range 31 {
		check.Must(t, v.changed(t.Context(), change{listed: true, items: []item{itemOf(webApp(t))}}))
		check.Must(t, v.looked(t.Context()))
		now = now.Add(time.Second)
	}
	check.Equal(t, "requests in 31 s", 3, len(h.requests()))
}
