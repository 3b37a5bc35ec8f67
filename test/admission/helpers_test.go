package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// manifest is the manifest of these tests' Applications: a Service.
const manifest = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports:
  - {port: 80}
`

// manifestOf is [manifest] with a Service of another name.
func manifestOf(name string) string { return strings.ReplaceAll(manifest, "name: web", "name: "+name) }

// newNamespace creates a namespace for one test, in which the users have their roles.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := hub.NewNamespace(t, "admission")
	bindUsers(t, name)
	return name
}

// newApplication is an Application as a user writes it.
func newApplication(namespace, name string) *corev1.ConfigMap {
	return kit.Application(namespace, name, manifestOf(name))
}

// mustRun creates an Application, whose Service has its name, and waits until it runs.
func mustRun(t *testing.T, namespace, name string) {
	t.Helper()
	kit.Must(t, create(t, root, newApplication(namespace, name)))
	eventuallyState(t, application.StateRunning, namespace, name)
}

// mustRunLeaving is [mustRun] for an Application leaving, which is then being deleted until the test ends.
func mustRunLeaving(t *testing.T, namespace string) {
	t.Helper()
	mustRun(t, namespace, "leaving")
	kit.Must(t, patch(t, root, namespace, "leaving", `{"metadata": {"finalizers": ["example.org/stays", "local.krake.dev/resources"]}}`))
	kit.Must(t, hub.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "leaving", metav1.DeleteOptions{}))
	t.Cleanup(func() {
		kit.Eventually(t, func() string { // its agent removes its own finalizer first
			err := hub.TryChange(context.Background(), kit.ConfigMaps, namespace, "leaving", `{"metadata": {"finalizers": null}}`)
			if apierrors.IsNotFound(err) {
				return ""
			}
			return "it is still there: " + errorText(err)
		})
	})
}

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// create creates a ConfigMap, with [dryRun] as a dry run.
func create(t *testing.T, as user, cm *corev1.ConfigMap, options ...metav1.CreateOptions) error {
	t.Helper()
	return kit.ErrorOf(as.client(t).CoreV1().ConfigMaps(cm.Namespace).Create(t.Context(), cm, append(options, metav1.CreateOptions{})[0]))
}

// patch changes a ConfigMap with a merge patch.
func patch(t *testing.T, as user, namespace, name, patch string) error {
	t.Helper()
	return try(t, as, types.MergePatchType, namespace, name, patch)
}

// get reads a ConfigMap, or returns nil.
func get(t *testing.T, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	return hub.App(namespace, name).Stored(t)
}

// service reads a Service, or returns nil.
func service(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	return hub.Get(t, kit.Services, namespace, name)
}

// mustHeal changes an observed field and waits until the agent has reverted it.
func mustHeal(t *testing.T, namespace, name string) {
	t.Helper()
	hub.Change(t, kit.Services, namespace, name, `{"spec": {"selector": {"app": "other"}}}`)
	hub.EventuallyField(t, "web", kit.Services, namespace, name, "spec", "selector", "app")
}

// eventuallyState waits until the Application's status has this state.
func eventuallyState(t *testing.T, want application.State, namespace, name string) {
	t.Helper()
	kit.Eventually(t, func() string {
		cm := get(t, namespace, name)
		if cm == nil {
			return name + " does not exist"
		}
		if got := cm.Labels[application.StateLabel]; got != string(want) {
			return fmt.Sprintf("state of %s is %q, want %s: %s", name, got, want, cm.Data[application.StatusKey])
		}
		return ""
	})
}

// eventuallyGone waits until a ConfigMap and the Service of its name do not exist.
func eventuallyGone(t *testing.T, namespace, name string) {
	t.Helper()
	hub.EventuallyGone(t, kit.ConfigMaps, namespace, name)
	hub.EventuallyGone(t, kit.Services, namespace, name)
}

// complain fails unless the error has the text; "" means no error.
func complain(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted, want a refusal with %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("refused, but without %q: %v", want, err)
	}
}

func update(t *testing.T, as user, cm *corev1.ConfigMap) error {
	t.Helper()
	return kit.ErrorOf(as.client(t).CoreV1().ConfigMaps(cm.Namespace).Update(t.Context(), cm, metav1.UpdateOptions{}))
}

// change edits an object as the user. It reads the object again after a conflict,
// because agents write the status meanwhile.
func change(t *testing.T, as user, namespace, name string, how func(*corev1.ConfigMap)) error {
	t.Helper()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		cm := get(t, namespace, name)
		how(cm)
		return update(t, as, cm)
	})
}
