package cli

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// The request for a proposal creates no object.
func TestTrialsAreDry(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("dryRun"))
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web-1"}, "spec": {"replicas": 1}}`)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	check.Must(t, err)
	deployments := gvr.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	mapping := &meta.RESTMapping{Resource: deployments, Scope: meta.RESTScopeNamespace}
	created, err := objects{Interface: client}.trialIn(t.Context(), mapping, "demo")(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"})
	if err != nil || schema.ValueAt(created, lens.PathOf("spec", "replicas")) != int64(1) {
		t.Errorf("%v, %v", created, err)
	}
	check.Equal(t, "asked", []string{"POST /apis/apps/v1/namespaces/demo/deployments All"}, asked)
}

// createdBy is an object that kubectl create has created: its managedFields do not distinguish
// the author's fields from defaults.
const createdBy = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: demo
  labels: {team: shop}
  managedFields:
  - manager: kubectl-create
    operation: OPERATION
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {"f:labels": {"f:team": {}}}
      f:spec:
        f:replicas: {}
        f:strategy: {"f:type": {}, "f:rollingUpdate": {"f:maxSurge": {}}}
        f:template: {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:image": {}, "f:resources": {}, "f:imagePullPolicy": {}}}}}
spec:
  replicas: 1
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 5}}
  template: {spec: {containers: [{name: web, image: "web:1", resources: {}, imagePullPolicy: Always}]}}
status: {replicas: 1}
`

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
	const kept = `apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    team: null
  name: web
spec:
`
	const strategy, all = `  strategy:
    rollingUpdate:
      maxSurge: null
`, `  replicas: null
  strategy:
    rollingUpdate:
      maxSurge: null
    type: null
  template:
    spec:
      containers:
      - image: null
        imagePullPolicy: null
        name: null
`
	const length = `      - observer_schema_list_max_length: 1
        observer_schema_list_min_length: 1
`
	const head = "# Observer schema of apps/v1 Deployment web: of what kubectl-create has set.\n" +
		"# not observed, as only the server sets it: metadata.managedFields, status\n# not observed, as the namespace is that of the Application: metadata.namespace\n"
	refuse := func(err error) trial {
		return func(map[string]any) (map[string]any, error) { return nil, err }
	}
	deployments := gvr.GroupResource{Group: "apps", Resource: "deployments"}
	for _, c := range []struct {
		why, operation string
		try            trial
		want           string
	}{
		{"created", "Update", defaulting(t), head + "# not observed, as the API server fills it in if no client sets it: spec.replicas, spec.strategy.type\n" +
			kept + strategy + "  template:\n    spec:\n      containers:\n      - image: null\n        imagePullPolicy: null\n        name: null\n" + length},
		{"applied by the server, which knows what was applied", "Apply", refuse(errors.New("asked")), head + kept + all + length},
		{"without the right to create one", "Update", refuse(apierrors.NewForbidden(deployments, "", errors.New("not you"))), head +
			"# which of these fields are but defaults of the API server is not known, as its dry run failed: deployments.apps is forbidden: not you\n" + kept + all + length},
		{"refused, and what it says of values is nobody's to see", "Update", refuse(apierrors.NewInvalid(gvr.GroupKind{Kind: "Deployment"}, "hunter2", nil)), head +
			"# which of these fields are but defaults of the API server is not known, as its dry run failed: Invalid\n" + kept + all + length},
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
		check.Equal(t, c.why, c.want, text)
		check.Equal(t, c.why+": the object afterwards", before, live)
	}
}
