package kubectl

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/docs"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The recipes of docs/schema-by-example.md are true: each file is applied unchanged,
// each change is made, and the value is as in the table.
func TestRecipes(t *testing.T) {
	kit.Long(t, "each recipe of the documentation")
	page, err := docs.Read("../../docs/schema-by-example.md")
	kit.Must(t, err)
	recipes := slices.DeleteFunc(page.Sections, func(s docs.Section) bool {
		return !slices.ContainsFunc(s.Parts, func(p docs.Part) bool { return p.Block != nil })
	})
	if len(recipes) < 10 {
		t.Errorf("%d recipes are too few", len(recipes))
	}
	t.Run("of", func(t *testing.T) {
		for _, section := range recipes {
			t.Run(section.Anchor, func(t *testing.T) {
				t.Parallel()
				cook(t, section)
			})
		}
	})
}

// recipe is a recipe, tried in a namespace of its own.
type recipe struct {
	namespace string
	// app is the name of its Application.
	app string
	// stay has the rows with values that must still exist after the agent has compared
	// the same object again.
	stay []row
}

// row is a row of a recipe's table.
type row struct {
	command      []string // empty without a command
	verdict      string
	object, path string
	want         string
	asBefore     bool
}

func cook(t *testing.T, section docs.Section) {
	const most = 40 // characters that make a name unique
	r := recipe{namespace: "recipe-" + strings.Trim(section.Anchor[:min(most, len(section.Anchor))], "-")}
	namespaceFor(t, r.namespace)
	tables := 0
	for _, part := range section.Parts {
		switch {
		case part.Block != nil && part.Block.Is("yaml"):
			r.apply(t, part.Block)
		case part.Table != nil:
			tables++
			for _, cells := range part.Table.Rows {
				r.try(t, rowOf(t, cells))
			}
		}
	}
	if tables == 0 {
		t.Error("the recipe does not say what becomes of changes")
	}
	for _, row := range r.stay {
		t.Errorf("%v stays, but no later row shows that the agent has looked at %s since", row.command, row.object)
	}
}

// apply applies a file: an Application as its user, and other objects as the
// administrator. No object differs then.
func (r *recipe) apply(t *testing.T, block *docs.Block) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.yaml")
	kit.Must(t, os.WriteFile(file, []byte(block.Text), 0o600))
	var cm corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(block.Text), &cm); err != nil || cm.Annotations[application.FormatAnnotation] == "" {
		hub.Kubectl(t, "apply", "-f", file)
		hub.Kubectl(t, "wait", "--for=condition=Established", "crd", "--all")
		t.Cleanup(func() { hub.Kubectl(t, "delete", "-f", file) })
		return
	}
	if r.app = cm.Name; cm.Namespace != "" {
		t.Fatalf("the Application %s names a namespace", cm.Name)
	}
	// edith gets the rights on the new kind a moment later.
	kit.Must(t, kit.Wait(t.Context(), cm.Name+" is applied", func() (bool, error) {
		text, err := r.kubectl(t, "apply", "-f", file)
		if err != nil && !strings.Contains(text, "forbidden") && !strings.Contains(text, "may not") {
			return false, fmt.Errorf("%w: %s", err, text)
		}
		return err == nil, nil
	}))
	r.await(t, "it is carried out", func(app *application.Application) bool {
		return app.Status.ObservedSpec == app.Spec.Digest() && meta.IsStatusConditionTrue(app.Status.Conditions, application.ReconciledCondition)
	})
	checkNoDiff(t, r.namespace, r.app)
}

// rowOf reads a row of a table.
func rowOf(t *testing.T, cells []docs.Cell) row {
	t.Helper()
	if len(cells) != 3 || len(cells[2].Codes) < 2 {
		t.Fatalf("a row is not of a command, a verdict, and an object with a path and a value: %v", cells)
	}
	one := row{verdict: cells[1].Text, object: cells[2].Codes[0], path: cells[2].Codes[1]}
	if len(cells[0].Codes) > 0 {
		words, err := docs.Words(cells[0].Codes[0])
		kit.Must(t, err)
		if words[0] != "kubectl" {
			t.Fatalf("no command of kubectl: %v", words)
		}
		one.command = words[1:]
	}
	switch {
	case len(cells[2].Codes) == 3:
		one.want = cells[2].Codes[2]
	case strings.HasSuffix(cells[2].Text, "is as before"):
		one.asBefore = true
	case !strings.HasSuffix(cells[2].Text, "is nothing"):
		t.Fatalf("%q does not say which value there is", cells[2].Text)
	}
	return one
}

// try makes a change, and checks its result.
func (r *recipe) try(t *testing.T, row row) {
	t.Helper()
	before := drifts(r.read(t))
	if row.asBefore {
		if row.want = r.value(t, row); row.want == "" {
			t.Fatalf("%s %s: there is nothing before", row.object, row.path)
		}
	}
	if row.command != nil {
		if text, err := r.kubectl(t, row.command...); err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(row.command, " "), err, text)
		}
	}
	switch row.verdict {
	case "is created", "is learned", "is accepted", "is taken off", "is healed":
	case "stays":
		r.stay = append(r.stay, row)
	case "is reverted":
		r.await(t, "the drift is recorded", func(app *application.Application) bool { return drifts(app) > before })
	case "is reported":
		r.await(t, "it is reported", func(app *application.Application) bool {
			return meta.IsStatusConditionTrue(app.Status.Conditions, application.DriftedCondition)
		})
	default:
		t.Fatalf("nobody knows what %q means", row.verdict)
	}
	r.awaitValue(t, row)
	if row.verdict == "is reverted" {
		r.look(t, row.object)
	}
}

// look checks the values of an object that must stay, after the agent has repaired
// another field of it: any other repair would happen with it.
func (r *recipe) look(t *testing.T, object string) {
	t.Helper()
	r.stay = slices.DeleteFunc(r.stay, func(former row) bool {
		if former.object != object {
			return false
		}
		if value := r.value(t, former); value != former.want {
			t.Errorf("%v: %s is %q, but was to stay %q", former.command, former.path, value, former.want)
		}
		return true
	})
}

func (r *recipe) awaitValue(t *testing.T, row row) {
	t.Helper()
	var last string
	err := kit.Wait(t.Context(), fmt.Sprintf("%s %s is %q", row.object, row.path, row.want), func() (bool, error) {
		last = r.value(t, row)
		return last == row.want, nil
	})
	if err != nil {
		t.Errorf("kubectl %s: %v: it is %q, and the status %+v", strings.Join(row.command, " "), err, last, r.read(t).Status)
	}
}

// value returns a value of an object; it is empty while the object does not exist.
func (r *recipe) value(t *testing.T, row row) string {
	t.Helper()
	text, err := r.kubectl(t, "get", row.object, "--ignore-not-found", "--output=jsonpath="+row.path)
	if err != nil {
		t.Fatalf("get %s: %v\n%s", row.object, err, text)
	}
	return text
}

func (r *recipe) kubectl(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	return try(t.Context(), append([]string{"--as=" + edith, "--namespace=" + r.namespace}, arguments...)...)
}

func (r *recipe) read(t *testing.T) *application.Application {
	t.Helper()
	return hub.App(r.namespace, r.app).Read(t)
}

func (r *recipe) await(t *testing.T, what string, done func(*application.Application) bool) {
	t.Helper()
	var app *application.Application
	err := kit.Wait(t.Context(), what, func() (bool, error) {
		app = r.read(t)
		return done(app), nil
	})
	if err != nil {
		t.Fatalf("%v: the status is %+v", err, app.Status)
	}
}

// drifts counts all drifts so far.
func drifts(app *application.Application) int {
	count := 0
	for _, drift := range app.Status.Drifts {
		count += drift.Count
	}
	return count
}
