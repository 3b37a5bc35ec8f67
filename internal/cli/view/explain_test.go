package view

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct{ why, schema, path, want string }{
		{"the identity", "", "metadata.name", "is observed: it is of the identity of the object, and never differs"},
		{"by default, what the manifest says", "", "spec.replicas", "is observed: the object has no observer schema, so that all is observed that the manifest says"},
		{"a part of what is observed", "", "spec.template", "is looked into, and observed in part: the object has no"},
		{"what only the server sets", "", "metadata.uid", "is not observed: only the server sets it"},
		{"a list that may be of one length only", "", "spec.template.spec.containers[1].name", "is not observed: of the list spec.template.spec.containers, elements from index 1 on count for its length only, which has to be 1"},
		{"a line of the schema", clitest.DeploymentSchema, "spec.replicas", "is observed: line 5 of data.spec.observer_schema says so"},
		{"a value that is not known", clitest.DeploymentSchema, "spec.revisionHistoryLimit", "is observed: line 6 of data.spec.observer_schema says so; no value is known yet"},
		{"a value that was learned", clitest.DeploymentSchema, "spec.strategy.type", "is observed: line 7 of data.spec.observer_schema says so; its value was learned from the cluster, and is pinned: Recreate"},
		{"what the schema leaves out", clitest.DeploymentSchema, "spec.selector.matchLabels.app", "is not observed: the observer schema does not name it (line 4 of data.spec.observer_schema is where it would be)"},
	} {
		t.Run(c.why, func(t *testing.T) {
			app := clitest.AdmittedOf(t, clitest.Deployment, c.schema)
			app.Learned = []map[string]any{clitest.Parsed(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {strategy: {type: Recreate}}}`)}
			expected := clitest.ExpectedOf(t, app)
			path, err := ParsePath(c.path)
			check.Must(t, err)
			got := Explain(app, expected, path)[0].String()
			if want := "apps/v1 Deployment web: " + c.path + " " + c.want; !strings.HasPrefix(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestParsePath(t *testing.T) {
	for text, want := range map[string]string{
		"spec.ports[0].port":     "spec.ports[0].port",
		".spec":                  "spec",
		`metadata.labels["a.b"]`: `metadata.labels["a.b"]`,
		"metadata.labels[a.b/c]": `metadata.labels["a.b/c"]`,
		`a["x]\"y"][1][2].b`:     `a["x]\"y"][1][2].b`,
		"":                       "", "a..b": "", "a[": "", "a[]": "", "a[-1": "", "[0].a": "", "a.[": "",
	} {
		path, err := ParsePath(text)
		if got := path.String(); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
