package lens

import (
	_ "embed"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

//go:embed testdata/web.yaml
var web string

// live is the Deployment with what others have added.
//
//go:embed testdata/live.yaml
var live string

func parsed(t testing.TB, text string) map[string]any {
	t.Helper()
	values, err := manifest.Decode([]byte(text))
	check.Must(t, err)
	object, _ := values[0].(map[string]any)
	return object
}

// admitted returns the Application as the webhook admits it, and its only object.
func admitted(t testing.TB, resource, observerSchema string) (*application.Application, plan.Expected) {
	t.Helper()
	cm := &corev1.ConfigMap{Data: map[string]string{application.ManifestKey: resource}}
	cm.Name, cm.Namespace, cm.UID = "web", "demo", "1"
	cm.Annotations = map[string]string{application.FormatAnnotation: application.Format}
	if observerSchema != "" {
		cm.Data[application.ObserverSchemaKey] = observerSchema
	}
	if prepared := mutate.PrepareForCreate(t.Context().Err, cm); len(prepared.Refusals) > 0 {
		t.Fatalf("refused: %v\n%s", prepared.Refusals, observerSchema)
	}
	app, err := application.Read(cm)
	check.Must(t, err)
	expected, err := plan.Expect(app, plan.NoTypes)
	check.Must(t, err)
	return app, expected[0]
}

func linesOf(t *testing.T, observerSchema, live string) (plan.Expected, []Line) {
	t.Helper()
	app, expected := admitted(t, web, observerSchema)
	lines, err := Lines(app, expected, parsed(t, live), false)
	check.Must(t, err)
	return expected, lines
}

func (l Line) name() string {
	if l.Toggle.Length > 0 {
		return "length of " + l.Toggle.Place.String()
	}
	return l.Toggle.Place.String()
}

func toggles(lines []Line) map[string]Line {
	found := map[string]Line{}
	for _, line := range lines {
		if line.Toggle != nil {
			found[line.name()] = line
		}
	}
	return found
}

func observed(lines []Line) []string {
	found := toggles(lines)
	maps.DeleteFunc(found, func(_ string, line Line) bool { return !line.Observed })
	return slices.Sorted(maps.Keys(found))
}

func text(t *testing.T, document map[string]any) string {
	t.Helper()
	out, err := yaml.Marshal(document)
	check.Must(t, err)
	return string(out)
}

// Whatever is toggled: admission accepts the observer schema, and it observes exactly these fields.
func TestAToggledSchemaObservesExactlyTheseFields(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 25
	}
	random := rand.New(rand.NewPCG(29, 1))
	for _, start := range []string{"", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: null}}`} {
		for range rounds {
			expected, lines := linesOf(t, start, live)
			all := toggles(lines)
			names := slices.Sorted(maps.Keys(all))
			random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			names = names[:random.IntN(len(names))]
			want := slices.Sorted(maps.Keys(all))
			want = slices.DeleteFunc(want, func(name string) bool { return all[name].Observed == slices.Contains(names, name) })
			var chosen []Toggle
			for _, name := range names {
				chosen = append(chosen, *all[name].Toggle)
			}
			edited := text(t, Edit(expected.Mangled.Document(), chosen))
			_, after := linesOf(t, edited, live)
			check.Equal(t, "observed after "+strings.Join(names, ", ")+" by\n"+edited, strings.Join(want, "\n"), strings.Join(observed(after), "\n"))
			if t.Failed() {
				return
			}
		}
	}
}

// linesOfWeb has a sign of the look of each line, and t for a field that can be toggled.
//
//go:embed testdata/linesOfWeb.txt
var linesOfWeb string

func TestLinesShowHowEachFieldIsObserved(t *testing.T) {
	_, lines := linesOf(t, "", live)
	var shown []string
	for _, line := range lines {
		mark := map[Look]string{"": " ", InOrder: "=", Drifting: "!", Pinned: "^", Unobserved: ".", Private: "*"}[line.Look]
		if line.Toggle != nil {
			mark += "t"
		}
		row := mark + "\t" + line.Text
		for _, more := range []string{line.Desired, line.Note, line.Culprit.Manager} {
			if more != "" {
				row += "\t# " + more
			}
		}
		shown = append(shown, row)
	}
	check.Equal(t, "lines", strings.Split(linesOfWeb, "\n"), append(shown, ""))
}

// A field that is added and removed again leaves nothing behind, not even the length of its list.
func TestAFieldThatIsAddedAndRemovedLeavesNothing(t *testing.T) {
	for _, start := range []string{"", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: null}}`} {
		expected, lines := linesOf(t, start, live)
		before := expected.Mangled.Document()
		for name, line := range toggles(lines) {
			if line.Observed {
				continue
			}
			added := Edit(before, []Toggle{*line.Toggle})
			check.Equal(t, name+" is added and removed", text(t, before), text(t, Edit(added, []Toggle{*line.Toggle})))
		}
	}
}
