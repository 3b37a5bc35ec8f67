package hooks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
			cm := applicationOf(namespace, "web", row.manifest, wishes{"hooks": "complete,shutdown", "hooks-init-containers": "true"})
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

// secretsOf reads the data of the Secrets of an Application's hooks, by name.
func secretsOf(t *testing.T, namespace string) map[string]map[string][]byte {
	t.Helper()
	list, err := env.hub.CoreV1().Secrets(namespace).List(context.Background(), metav1.ListOptions{LabelSelector: application.OwnedByLabel})
	kit.Must(t, err)
	found := map[string]map[string][]byte{}
	for _, secret := range list.Items {
		found[secret.Name] = secret.Data
	}
	return found
}

// Any change to what the hooks add is reverted: variables, mounts and volumes at once,
// Secrets at the next check, once a minute. Token and key stay the same, because
// running Pods have no others.
func TestTampering(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	env.local.put(t, namespace, heard)
	a := newApp(t, namespace, "web", job+shutdownService, wishes{"hooks": "complete,shutdown"})
	a.MustBe(t, application.StateRunning)
	before, p := secretsOf(t, namespace), mustStartPod(t, env.hub, namespace, "web")
	if got := slices.Sorted(maps.Keys(before)); len(got) != 4 {
		t.Fatalf("there are %v", got)
	}
	t.Run("workload", func(t *testing.T) { tamperWithWorkload(t, namespace) })

	at := env.hub.CoreV1().Secrets(namespace)
	patch := func(name, body string) error {
		return env.hub.TryChange(t.Context(), kit.Secrets, namespace, name, body)
	}
	kit.Must(t, patch("web-krake-complete-secret-token", `{"data": {"krake_complete_token": "d3Jvbmc="}}`))
	kit.Must(t, patch("web-krake-complete-secret-certs", `{"data": {"key.pem": "d3Jvbmc=", "ca-bundle.pem": null}, "metadata": {"labels": {"krake.dev/owned-by": null}}}`))
	kit.Must(t, at.Delete(t.Context(), "web-krake-shutdown-secret-token", metav1.DeleteOptions{}))
	kit.Must(t, at.Delete(t.Context(), "web-krake-shutdown-secret-certs", metav1.DeleteOptions{}))
	if err := patch("web-krake-complete-secret-token", `{"type": "example.org/other"}`); !apierrors.IsInvalid(err) {
		t.Errorf("the type of a Secret can be changed: %v", err)
	}
	kit.Eventually(t, func() string {
		if diff := cmp.Diff(before, secretsOf(t, namespace)); diff != "" {
			return "another client has changed Secrets, and they still differ" // the values are private
		}
		return ""
	})
	a.MustBe(t, application.StateRunning)
	kit.Eventually(t, func() string { return driftsOf(t, a) })
	a.Delete(t)
	a.MustBe(t, application.StateWaiting)
	p.mustAnswer(t, env.local, "the token of before", p.says(application.Shutdown), 200)
	a.mustGo(t, env.hub)
}

// tamperWithWorkload changes the Deployment in several ways, and waits for each repair.
func tamperWithWorkload(t *testing.T, namespace string) {
	const container = "/spec/template/spec/containers/0"
	deployment := func() corev1.PodSpec {
		live, err := env.hub.AppsV1().Deployments(namespace).Get(context.Background(), "web", metav1.GetOptions{})
		kit.Must(t, err)
		spec := live.Spec.Template.Spec
		for _, container := range spec.Containers { // repaired entries are added at the end
			slices.SortFunc(container.Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
			slices.SortFunc(container.VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
		}
		slices.SortFunc(spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
		return spec
	}
	before := deployment()
	for _, row := range []struct{ what, patch string }{
		{"a variable refers to another key", `[{"op": "replace", "path": "` + container + `/env/1/valueFrom/secretKeyRef/key", "value": "other"}]`},
		{"a variable has a value", `[{"op": "remove", "path": "` + container + `/env/1/valueFrom"}, {"op": "add", "path": "` + container + `/env/1/value", "value": "mine"}]`},
		{"a variable is removed", `[{"op": "remove", "path": "` + container + `/env/2"}]`},
		{"a mount is removed", `[{"op": "remove", "path": "` + container + `/volumeMounts/0"}]`},
		{"a mount is of another volume", `[{"op": "replace", "path": "` + container + `/volumeMounts/1/name", "value": "web-krake-complete-volume"}]`},
		{"a volume is of another Secret", `[{"op": "replace", "path": "/spec/template/spec/volumes/0/secret/secretName", "value": "other"}]`},
	} {
		env.hub.Kubectl(t, "--namespace", namespace, "patch", "deployment", "web", "--type=json", "--patch", row.patch)
		kit.Eventually(t, func() string { return cmp.Diff(before, deployment()) })
		t.Logf("%s: undone", row.what)
	}
}

// driftsOf returns the missing drifts of the changed Secrets in the status.
func driftsOf(t *testing.T, a app) string {
	t.Helper()
	told := map[string]string{}
	for _, drift := range a.Read(t).Status.Drifts {
		if drift.Object.Kind == "Secret" {
			told[drift.Object.Name] = fmt.Sprintf("%s, fields: %t", drift.Repaired, len(drift.Fields) > 0)
		}
	}
	want := map[string]string{ //nolint:gosec // names of Secrets
		"web-krake-complete-secret-token": "DriftReverted, fields: true", "web-krake-complete-secret-certs": "DriftReverted, fields: true",
		"web-krake-shutdown-secret-token": "Recreated, fields: false", "web-krake-shutdown-secret-certs": "Recreated, fields: false",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		return "drifts of Secrets (-want +got):\n" + diff
	}
	return ""
}
