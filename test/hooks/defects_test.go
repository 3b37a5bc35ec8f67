package hooks

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// variables is a workload in which the user sets some variables.
const variables = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", env: [{name: FIRST, value: "1"}, {name: SECOND, value: "2"}]}]}
`

// Defects that Krake has with observer schemas and hooks together, each on a real API server
// with both hooks. An untouched Application has no drift. An element that another client adds to
// a list without a length limit in the schema is no drift either.
func TestHooksCauseNoDrift(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
	const added = `[{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "INJECTED", "value": "1"}}]`
	for name, row := range map[string]struct {
		manifest, schema string
		then             string // the other client's JSON patch of the Deployment
	}{
		"the default schema": {manifest: job + shutdownService},
		"a schema of the identity alone, and somebody adds a variable": {manifest: variables, schema: head, then: added},
		"a maximum of 0": {manifest: variables, schema: head + "spec: {template: {spec: {containers: [{name: null, env: [{observer_schema_list_min_length: 0, observer_schema_list_max_length: 0}]}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]}}}\n", then: added},
		"two variables, of which the second is observed": {manifest: variables, schema: head + "spec: {template: {spec: {containers: [{name: null, env: [{}, {name: null, value: null}, {observer_schema_list_min_length: 2, observer_schema_list_max_length: 2}]}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]}}}\n"},
		"two variables, of which the first is observed":  {manifest: variables, schema: head + "spec: {template: {spec: {containers: [{name: null, env: [{name: null, value: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 2}]}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]}}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			cm := applicationOf(namespace, "web", row.manifest, settings{"hooks": "complete,shutdown", "hooks-init-containers": "true"})
			kit.Schema(row.schema)(cm)
			a := app{env.hub.CreateApp(t, cm)}
			a.MustBe(t, application.StateRunning)
			checkInjected(t, namespace)
			if row.then != "" {
				env.hub.Kubectl(t, "--namespace", namespace, "patch", "deployment", "web", "--type=json", "--patch", row.then)
			}
			begin := env.hub.Mark(t)
			a.MustBe(t, application.StateRunning)
			checkQuiet(t, a, begin, row.then != "")
		})
	}
}

// checkInjected fails unless each container has what both hooks add.
func checkInjected(t *testing.T, namespace string) {
	t.Helper()
	live, err := env.hub.AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{})
	kit.Must(t, err)
	want := []string{"KRAKE_COMPLETE_TOKEN", "KRAKE_COMPLETE_URL", "KRAKE_SHUTDOWN_TOKEN", "KRAKE_SHUTDOWN_URL", "/etc/krake_complete_certs/", "/etc/krake_shutdown_certs/"}
	spec := live.Spec.Template.Spec
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		var got []string
		for _, variable := range container.Env {
			if variable.ValueFrom != nil {
				got = append(got, variable.Name)
			}
		}
		for _, mount := range container.VolumeMounts {
			got = append(got, mount.MountPath)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("container %s (-want +got):\n%s", container.Name, diff)
		}
	}
}

// checkQuiet fails if the agent writes anything for an Application within 10 s, or has
// ever repaired it. The agent may report the rollout of its workload.
func checkQuiet(t *testing.T, a app, begin kit.Mark, rolledOut bool) {
	t.Helper()
	time.Sleep(10 * time.Second) // only time shows that nothing happens
	work := slices.DeleteFunc(worked(t, begin, a.Namespace), func(l kit.Request) bool { return rolledOut && l.Name() == a.Name && l.Object.Resource == "configmaps" })
	if len(work) > 0 {
		t.Errorf("nobody has done anything, and the agent has: %v", work)
	}
	if drifts := a.Read(t).Status.Drifts; len(drifts) > 0 {
		t.Errorf("it says that it has drifted: %v", drifts)
	}
}
