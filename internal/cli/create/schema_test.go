package create

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// The proposal for a live object has the fields that its author has set. The proposal for a
// manifest has all fields but those that others write.
func TestPropose(t *testing.T) {
	var out strings.Builder
	for _, c := range []struct{ why, resource, live string }{
		{"what is on the cluster", "", clitest.Scaled},
		{"a manifest of what is not there", clitest.Service, ""},
		{"what no Application may observe", "", `
apiVersion: v1
kind: Secret
metadata:
  name: web
  finalizers: [example.org/x]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", krake.dev/owner: x, note: y}
  namespace: demo
  managedFields:
  - {manager: kubectl, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {f:type: {}, f:data: {}, f:metadata: {f:annotations: {}, f:finalizers: {}}}}
type: Opaque
data: {password: aHVudGVyMg==}
`},
	} {
		t.Run(c.why, func(t *testing.T) {
			var resource, live map[string]any
			if c.resource != "" {
				resource = clitest.Parsed(t, c.resource)
			}
			if c.live != "" {
				live = clitest.Parsed(t, c.live)
			}
			got := proposed(t, resource, live)
			fmt.Fprintf(&out, "== %s\n%s", c.why, got)
			if c.resource != "" {
				clitest.Prepared(t, c.resource, got) // the webhook accepts it
			}
		})
	}
	clitest.Golden(t, "propose.txt", out.String())
}

func proposed(t *testing.T, resource, live map[string]any) string {
	t.Helper()
	p, err := propose(resource, live, nil, nil)
	check.Must(t, err)
	text, err := p.text()
	check.Must(t, err)
	return text
}

func TestProposeNeedsManagedFields(t *testing.T) {
	_, err := propose(nil, clitest.Parsed(t, clitest.Service), nil, nil)
	check.Fails(t, "propose", err, "propose from a manifest, by -f")
}

// createdBy is an object that kubectl create has created: its managedFields do not distinguish
// the author's fields from defaults.
//
//go:embed testdata/createdBy.yaml
var createdBy string

// defaulting returns a trial that sets known defaults, and refuses an object without required
// fields.
func defaulting(t *testing.T) trial {
	t.Helper()
	return func(object map[string]any) (map[string]any, error) {
		created := runtime.DeepCopyJSON(object)
		for _, name := range []string{"status", "name", "managedFields"} {
			if schema.ValueAt(created, schema.FieldPath(name)) != nil || schema.ValueAt(created, schema.FieldPath("metadata", name)) != nil {
				t.Errorf("%s is sent, which is not to be", name)
			}
		}
		spec, _ := created["spec"].(map[string]any)
		containers, _ := schema.ValueAt(created, schema.FieldPath("spec", "template", "spec", "containers")).([]any)
		if len(containers) == 0 {
			return nil, errors.New("containers: Required value: hunter2")
		}
		container, _ := containers[0].(map[string]any)
		if container["image"] == nil || container["name"] == nil {
			return nil, errors.New("image: Required value")
		}
		fill := func(fields map[string]any, name string, value any) {
			if fields[name] == nil {
				fields[name] = value
			}
		}
		fill(spec, "replicas", int64(1))
		fill(spec, "strategy", map[string]any{})
		strategy, _ := spec["strategy"].(map[string]any)
		fill(strategy, "type", "RollingUpdate")
		fill(strategy, "rollingUpdate", map[string]any{"maxSurge": "25%"})
		fill(container, "resources", map[string]any{})
		fill(container, "imagePullPolicy", "IfNotPresent")
		return created, nil
	}
}

// For an object that was plainly created, defaults of the API server are distinguished from
// the author's fields. If that is impossible, the output reports it.
func TestProposeWithoutDefaults(t *testing.T) {
	var out strings.Builder
	refuse := func(err error) trial {
		return func(map[string]any) (map[string]any, error) { return nil, err }
	}
	deployments := gvr.GroupResource{Group: "apps", Resource: "deployments"}
	for _, c := range []struct {
		why, operation string
		try            trial
	}{
		{"created", "Update", defaulting(t)},
		{"applied by the server, which knows what was applied", "Apply", refuse(errors.New("asked"))},
		{"without the right to create one", "Update", refuse(apierrors.NewForbidden(deployments, "", errors.New("not you")))},
		{"refused, and what it says of values is nobody's to see", "Update", refuse(apierrors.NewInvalid(gvr.GroupKind{Kind: "Deployment"}, "hunter2", nil))},
	} {
		live := clitest.Parsed(t, strings.Replace(createdBy, "OPERATION", c.operation, 1))
		before := runtime.DeepCopyJSON(live)
		p, err := propose(nil, live, nil, nil)
		if err == nil {
			p, err = withoutDefaults(p, live, c.try, nil)
		}
		check.Must(t, err)
		text, err := p.text()
		check.Must(t, err)
		fmt.Fprintf(&out, "== %s\n%s", c.why, text)
		check.Equal(t, c.why+": the object afterwards", before, live)
	}
	clitest.Golden(t, "propose-without-defaults.txt", out.String())
}

func TestSchemaCommand(t *testing.T) {
	c := clitest.NewCluster()
	c.Store(t, clitest.Deployment+"---"+clitest.Service, clitest.ServiceSchema)
	c[clitest.LiveDeployment], c[clitest.LiveService] = clitest.Parsed(t, clitest.Scaled), clitest.Parsed(t, clitest.Service)
	manifest := map[string]string{"service.yaml": clitest.Service + "---" + strings.Replace(clitest.Service, "name: web", "name: other", 1)}
	for _, one := range []struct {
		arguments, want, says string
		status                int
	}{
		{"schema web", "kind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - nodePort: null\n    port: null\n  - observer_schema_list_max_length: 2\n    observer_schema_list_min_length: 1\n  type: null\n---\napiVersion: apps/v1\nkind: Deployment\n", "", 0},
		{"schema web --explain spec.replicas", "v1 Service web: spec.replicas is not observed: the observer schema does not name it (line 5 of data.spec.observer_schema is where it would be)\n", "", 0},
		{"schema web --explain spec.replicas --object deployment/web", "apps/v1 Deployment web: spec.replicas is observed: the object has no observer schema, so that all is observed that the manifest says\n", "", 0},
		{"schema --propose deploy/web", "# not observed, as kube-controller-manager (scale) writes it: spec.replicas\n", "", 0},
		{"schema --propose song/other", "", "find the kind song", 2},
		{"schema --propose -f service.yaml", "  type: null\n---\n# Observer schema of v1 Service other.\n", "v1 Service demo/other: it is not on the cluster", 0},
	} {
		c.Check(t, Commands, manifest, one.arguments, one.want, one.says, one.status)
	}
	if out, _, _ := c.Run(t, Commands, nil, "schema", "web", "--explain", "spec.replicas", "--object", "deployment/web"); strings.Contains(out, "Service") {
		t.Errorf("another object is told of: %s", out)
	}
}
