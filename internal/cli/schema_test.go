package cli

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
)

// The proposal for a live object has the fields that its author has set. The proposal for a
// manifest has all fields but those that others write.
func TestPropose(t *testing.T) {
	var out strings.Builder
	for _, c := range []struct{ why, resource, live string }{
		{"what is on the cluster", "", scaled},
		{"a manifest of what is not there", service, ""},
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
				resource = parsed(t, c.resource)
			}
			if c.live != "" {
				live = parsed(t, c.live)
			}
			got := proposed(t, resource, live)
			fmt.Fprintf(&out, "== %s\n%s", c.why, got)
			if c.resource != "" {
				prepared(t, c.resource, got) // the webhook accepts it
			}
		})
	}
	golden(t, "propose.txt", out.String())
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
	_, err := propose(nil, parsed(t, service), nil, nil)
	check.Fails(t, "propose", err, "propose from a manifest, by -f")
}

func TestExplain(t *testing.T) {
	for _, c := range []struct{ why, schema, path, want string }{
		{"the identity", "", "metadata.name", "is observed: it is of the identity of the object, and never differs"},
		{"by default, what the manifest says", "", "spec.replicas", "is observed: the object has no observer schema, so that all is observed that the manifest says"},
		{"a part of what is observed", "", "spec.template", "is looked into, and observed in part: the object has no"},
		{"what only the server sets", "", "metadata.uid", "is not observed: only the server sets it"},
		{"a list that may be of one length only", "", "spec.template.spec.containers[1].name", "is not observed: of the list spec.template.spec.containers, elements from index 1 on count for its length only, which has to be 1"},
		{"a line of the schema", deploymentSchema, "spec.replicas", "is observed: line 5 of data.spec.observer_schema says so"},
		{"a value that is not known", deploymentSchema, "spec.revisionHistoryLimit", "is observed: line 6 of data.spec.observer_schema says so; no value is known yet"},
		{"a value that was learned", deploymentSchema, "spec.strategy.type", "is observed: line 7 of data.spec.observer_schema says so; its value was learned from the cluster, and is pinned: Recreate"},
		{"what the schema leaves out", deploymentSchema, "spec.selector.matchLabels.app", "is not observed: the observer schema does not name it (line 4 of data.spec.observer_schema is where it would be)"},
	} {
		t.Run(c.why, func(t *testing.T) {
			app := admittedOf(t, deployment, c.schema)
			app.Learned = []map[string]any{parsed(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {strategy: {type: Recreate}}}`)}
			expected := expectedOf(t, app)
			path, err := parsePath(c.path)
			check.Must(t, err)
			got := explanationsOf(app, expected, path)[0].String()
			if want := "apps/v1 Deployment web: " + c.path + " " + c.want; !strings.HasPrefix(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestParsePath(t *testing.T) {
	for text, want := range map[string]string{
		".spec.ports[0].port": "spec.ports[0].port", "": "", "a..b": "", "[0].a": "",
	} {
		path, err := parsePath(text)
		if got := path.String(); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
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
		live := parsed(t, strings.Replace(createdBy, "OPERATION", c.operation, 1))
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
	golden(t, "propose-without-defaults.txt", out.String())
}
