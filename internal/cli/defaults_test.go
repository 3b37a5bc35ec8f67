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

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

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
			if schema.ValueAt(created, lens.PathOf(name)) != nil || schema.ValueAt(created, lens.PathOf("metadata", name)) != nil {
				t.Errorf("%s is sent, which is not to be", name)
			}
		}
		spec, _ := created["spec"].(map[string]any)
		containers, _ := schema.ValueAt(created, lens.PathOf("spec", "template", "spec", "containers")).([]any)
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
