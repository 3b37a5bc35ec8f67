package observer

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// withSummary puts data.b, which is not observed, into the summary.
func withSummary(options *Options, _ *rest.Config) {
	options.Summarise = func(live map[string]any) any {
		b, _, err := unstructured.NestedString(live, "data", "b")
		if err != nil {
			return err
		}
		return b
	}
}

// The notifications about the summary of an object. Of the steps, b=... changes data.b, and
// c=... changes a field outside the summary. observe and start are calls of the owner. own
// b=... is the owner's own write, which it passes to Start.
func TestSummary(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		steps []string
		want  int
	}{
		{"it changed", []string{"b=2"}, 1},
		{"it did not", []string{"c=1"}, 0},
		{"what was told is not told again", []string{"b=2", "c=1", "c=2"}, 1},
		{"a change back is one", []string{"b=2", "b=1"}, 2},
		{"what the owner was given is not told", []string{"observe", "start", "c=1"}, 0},
		{"what changed before it acted is known when it acts", []string{"b=2", "observe", "start", "c=1"}, 1},
		{"what changed while it acts is told at the end, once", []string{"observe", "b=2", "start", "c=1"}, 1},
		{"what changed back while it acts is nothing new", []string{"observe", "b=2", "b=1", "start", "c=1"}, 0},
		{"its own echo tells nothing", []string{"observe", "own b=2", "start", "c=1"}, 0},
		{"what changed after its own write is told", []string{"observe", "own b=2", "b=3", "start", "c=1"}, 1},
		{"its own write after a change tells it all", []string{"observe", "b=2", "own b=3", "start", "c=1"}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, _ := started(t, withSummary)
			f.play(t, c.steps)
			if got := f.count(web); got != c.want {
				t.Errorf("notified %d times, want %d", got, c.want)
			}
		})
	}
}

// play runs the steps of a test for web and the others.
func (f *fixture) play(t *testing.T, steps []string) {
	t.Helper()
	targets := []Target{f.target("web")}
	var seen []map[string]any
	for _, step := range steps {
		switch step {
		case "observe":
			f.observe(t, web, targets...)
		case "start":
			f.Start(web, targets, seen)
		default:
			written, own := strings.CutPrefix(step, "own ")
			field, value, _ := strings.Cut(written, "=")
			live := f.change(t, "web", fmt.Sprintf(`{"data": {%q: %q}}`, field, value))
			if own {
				seen = append(seen, live)
			}
		}
		f.flush(t)
	}
}
