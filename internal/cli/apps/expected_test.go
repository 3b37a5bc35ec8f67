package apps

import (
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// A value that was learned on another cluster is not desired on this one.
func TestExpectAfterAMove(t *testing.T) {
	app := clitest.AdmittedOf(t, clitest.Service, clitest.ServiceSchema)
	app.Learned = []map[string]any{clitest.Parsed(t, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80, nodePort: 30080}]}}`)}
	app.Status.Cluster = "east"
	expected, err := Expect(app, plan.NoTypes)
	check.Must(t, err)
	if _, pinned := schema.ValueAt(expected[0].Desired, schema.FieldPath("spec", "ports")).([]any)[0].(map[string]any)["nodePort"]; pinned {
		t.Error("the node port of another cluster is desired")
	}
}

func TestLeaving(t *testing.T) {
	app := clitest.AdmittedOf(t, clitest.Service, "")
	expected := clitest.ExpectedOf(t, app)
	stays := manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "web"}
	leaves := manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"}
	app.Inventory = []manifest.ID{stays, leaves}
	check.Equal(t, "what leaves", []manifest.ID{leaves}, Leaving(app, expected))
	// The Secrets of a hook stay while the hook exists.
	token := manifest.ID{APIVersion: "v1", Kind: "Secret", Namespace: "demo", Name: application.TokenSecret("web", application.Complete)}
	app.Inventory = []manifest.ID{stays, token}
	check.Equal(t, "without the hook", []manifest.ID{token}, Leaving(app, expected))
	app.Spec.Hooks.Complete = true
	check.Empty(t, "what leaves with the hook", Leaving(app, expected))
	check.Equal(t, "what becomes of it", "would be deleted", Becomes(app, leaves))
	app.Adopted = []manifest.ID{leaves}
	if got := Becomes(app, leaves); !strings.HasPrefix(got, "would be left") {
		t.Error(got)
	}
}
