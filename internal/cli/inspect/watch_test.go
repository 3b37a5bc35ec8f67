package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// session is a command that runs until the test ends.
type session struct {
	*testing.T

	out, errOut *clitest.Buffer
	end         func() error
}

// goesOn starts get -w with more flags.
func goesOn(t *testing.T, h *clitest.Hub, arguments ...string) session {
	t.Helper()
	e, out, errOut := h.Environment()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- clitest.Execute(ctx, e, newGetCommand, append(arguments, "-w")...) }()
	return session{t, out, errOut, func() error {
		cancel()
		return <-ended
	}}
}

// says waits until this many lines are printed, and returns the last.
func (s session) says(lines int) string {
	s.Helper()
	kit.EventuallyTrue(s.T, "another line", func() bool { return strings.Count(s.out.String(), "\n") >= lines })
	printed := strings.Split(strings.TrimSuffix(s.out.String(), "\n"), "\n")
	if len(printed) != lines {
		s.Errorf("%d lines, want %d:\n%s", len(printed), lines, s.out)
	}
	return printed[len(printed)-1]
}

// The output has the present state, then changes, in the same columns, and no line twice.
func TestGetWatches(t *testing.T) {
	h := clitest.NewHub(t, clitest.WebApp(t))
	h.Beat(application.LocalCluster, 0)
	s := goesOn(t, h)
	s.says(2)
	h.Watched()
	h.Put(clitest.HeldApp(t))
	check.Equal(t, "line 3", "held   RUNNING   False   1 (1 open)   local     3d", s.says(3))
	h.Put(clitest.WebApp(t)) // with another version, and no other change
	h.Put(clitest.Created("raw"))
	if line := s.says(4); !strings.HasPrefix(line, "raw    NotAdmitted   Unknown") {
		t.Errorf("%q", line)
	}
	h.Remove("demo", "web")
	if line := s.says(5); !strings.HasPrefix(line, "web    Deleted") {
		t.Errorf("%q", line)
	}
	none := clitest.Created("held")
	none.Annotations = nil
	h.Put(none)
	if line := s.says(6); !strings.HasPrefix(line, "held   Deleted") {
		t.Errorf("%q", line)
	}
	if err := s.end(); err != nil || s.errOut.String() != "" {
		t.Errorf("%v, %q", err, s.errOut)
	}
}

// When a watch ends, another one follows, and no change between them is lost.
func TestGetWatchesOn(t *testing.T) {
	h := clitest.NewHub(t, clitest.WebApp(t), clitest.HeldApp(t))
	h.Beat(application.LocalCluster, 0)
	s := goesOn(t, h)
	s.says(3)
	h.Watched()
	h.Expire()
	h.Remove("demo", "held")
	h.Put(clitest.Created("raw"))
	s.says(5)
	if text := s.out.String(); !strings.Contains(text, "raw    NotAdmitted") || !strings.Contains(text, "held   Deleted") {
		t.Error(text)
	}
	h.Watched()
	check.Must(t, s.end())
}

func TestGetWatchesNames(t *testing.T) {
	h := clitest.NewHub(t, clitest.WebApp(t), clitest.HeldApp(t))
	h.Beat(application.LocalCluster, 0)
	s := goesOn(t, h, "web", "-o", "yaml")
	kit.EventuallyTrue(t, "a document", func() bool { return strings.Contains(s.out.String(), "state: RUNNING\n") })
	h.Watched()
	h.Put(clitest.Recorded(t, clitest.Admitted(t, clitest.Created("held")), nil))
	h.Put(clitest.Recorded(t, clitest.Admitted(t, clitest.Created("web")), func(app *application.Application) { app.Status.State = application.StateFailed }))
	kit.EventuallyTrue(t, "another document", func() bool { return strings.Contains(s.out.String(), "state: FAILED\n") })
	if text := s.out.String(); strings.Count(text, "---\n") != 2 || strings.Contains(text, "name: held") {
		t.Error(text)
	}
	check.Must(t, s.end())
}

// If a resource cannot be watched, the command reports it and ends.
func TestGetWatchFails(t *testing.T) {
	for _, c := range []struct{ why, name, err string }{
		{"a name that is not there", "nope", "there is no Application nope in namespace demo"},
		{"no rights", "", "watch the Applications: "},
	} {
		h := clitest.NewHub(t, clitest.WebApp(t))
		if c.name == "" {
			h.Refuse("configmaps", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("not you")))
		}
		e, _, _ := h.Environment()
		err := clitest.Execute(t.Context(), e, newGetCommand, slices.DeleteFunc([]string{"-w", c.name}, func(a string) bool { return a == "" })...)
		check.Fails(t, c.why, err, c.err)
	}
}

// No event reports silence: the command checks for it.
func TestWatcherLooksForSilence(t *testing.T) {
	h := clitest.NewHub(t, clitest.WebApp(t))
	h.Beat(application.LocalCluster, 0)
	e, out, _ := h.Environment()
	w := watcher{Environment: e, options: getOptions{output: env.Output{Value: env.AsTable}}, known: known{}, said: map[string]line{}, table: env.NewTable(e.Out, env.Painter{})}
	err := w.changed(t.Context(), apps.Change{Listed: true, Items: []apps.Item{apps.ItemOf(clitest.WebApp(t))}})
	err = errors.Join(err, w.looked(t.Context()))
	h.Beat(application.LocalCluster, time.Hour)
	err = errors.Join(err, w.looked(t.Context()))
	e.Now = func() time.Time { return clitest.Noon.Add(time.Minute) } // still silent
	err = errors.Join(err, w.looked(t.Context()))
	want := "NAME   STATE     READY   DRIFTS       CLUSTER   AGE\n" +
		"web    RUNNING   True    4 (5m ago)   local     3d\n" +
		"web    AgentUnreachable   Unknown   4 (5m ago)   local     3d\n"
	if got := out.String(); err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}
