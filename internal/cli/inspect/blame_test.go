package inspect

import (
	"bytes"
	_ "embed"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

func blamed(t *testing.T) lens.Object {
	t.Helper()
	app := clitest.AdmittedOf(t, clitest.Deployment, clitest.DeploymentSchema)
	app.Learned = []map[string]any{clitest.Parsed(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {strategy: {type: Recreate}}}`)}
	expected := clitest.ExpectedOf(t, app)
	return lens.Compare(app, expected[0], clitest.MarkedAs("web", "1", clitest.Parsed(t, clitest.Scaled)), false)
}

// Each observed field is listed with its value, its present place, and its last writer.
func TestBlame(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	check.Must(t, printBlames(&out, []lens.Object{blamed(t)}, false, now))
	clitest.Golden(t, "blame.txt", out.String())
}

// A missing object has no fields with a writer, and a list has its length.
func TestBlameOfWhatIsMissing(t *testing.T) {
	app := clitest.AdmittedOf(t, clitest.Service, clitest.ServiceSchema)
	expected := clitest.ExpectedOf(t, app)
	var out bytes.Buffer
	short := clitest.MarkedAs("web", "1", clitest.Parsed(t, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: []}}`))
	blames := []lens.Object{lens.Compare(app, expected[0], nil, false), lens.Compare(app, expected[0], short, false)}
	check.Must(t, printBlames(&out, blames, true, time.Time{}))
	clitest.Golden(t, "blame-missing.txt", out.String())
}

func TestBlameCommand(t *testing.T) {
	c := clitest.NewCluster()
	c.Store(t, clitest.Deployment+"---"+clitest.Service, clitest.DeploymentSchema)
	c[clitest.LiveDeployment] = clitest.MarkedAs("web", "1", clitest.Parsed(t, clitest.Scaled))
	for _, one := range []struct {
		arguments, want, says string
		status                int
	}{
		{"blame web", "v1 Service demo/web\n  there is no such object\n", "", 0},
		{"blame web -o json", `"kind": "BlameList"`, "", 0},
		{"blame web -o yaml --object deployment/web", "path: spec.replicas\n", "", 0},
		{"blame web --object job/web", "", "the Application has no object job/web: it has deployment/web, service/web", 2},
		{"blame other", "", "there is no Application other", 2},
	} {
		out, says, status := c.Run(t, Commands, nil, strings.Fields(one.arguments)...)
		if !strings.Contains(out, one.want) || !strings.Contains(says, one.says) || status != one.status || strings.Contains(out, "hunter2") {
			t.Errorf("%s: %d: %s%s, want %s%s", one.arguments, status, out, says, one.want, one.says)
		}
	}
}
