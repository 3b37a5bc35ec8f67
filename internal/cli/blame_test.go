package cli

import (
	"bytes"
	_ "embed"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/test/check"
)

// scaled is a Deployment that kubectl has created, an autoscaler has scaled, and a user has
// edited. A webhook has put a sidecar in front.
//
//go:embed testdata/scaled.yaml
var scaled string

//go:embed testdata/deploymentSchema.yaml
var deploymentSchema string

func blamed(t *testing.T) lens.Object {
	t.Helper()
	app := admittedOf(t, deployment, deploymentSchema)
	app.Learned = []map[string]any{parsed(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {strategy: {type: Recreate}}}`)}
	expected := expectedOf(t, app)
	return lens.Compare(app, expected[0], markedAs("web", "1", parsed(t, scaled)), false)
}

// Each observed field is listed with its value, its present place, and its last writer.
func TestBlame(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	check.Must(t, printBlames(&out, []lens.Object{blamed(t)}, false, now))
	golden(t, "blame.txt", out.String())
}

// A missing object has no fields with a writer, and a list has its length.
func TestBlameOfWhatIsMissing(t *testing.T) {
	app := admittedOf(t, service, serviceSchema)
	expected := expectedOf(t, app)
	var out bytes.Buffer
	short := markedAs("web", "1", parsed(t, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: []}}`))
	blames := []lens.Object{lens.Compare(app, expected[0], nil, false), lens.Compare(app, expected[0], short, false)}
	check.Must(t, printBlames(&out, blames, true, time.Time{}))
	golden(t, "blame-missing.txt", out.String())
}
