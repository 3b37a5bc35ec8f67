package admission

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// manifest is what the Applications of these tests create: a Service.
const manifest = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports:
  - {port: 80}
`

// newNamespace makes a namespace for one test, in which the users have their roles.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := hub.NewNamespace(t, "admission")
	bindUsers(t, name)
	return name
}

// newApplication is an Application as a user writes it.
func newApplication(namespace, name string) *corev1.ConfigMap {
	return kit.Application(namespace, name, strings.ReplaceAll(manifest, "name: web", "name: "+name))
}

// mustRun creates an Application, whose Service has its name, and waits until it runs.
func mustRun(t *testing.T, namespace, name string) {
	t.Helper()
	if err := create(t, root, newApplication(namespace, name)); err != nil {
		t.Fatal(err)
	}
	eventuallyState(t, application.StateRunning, namespace, name)
}

func create(t *testing.T, as user, cm *corev1.ConfigMap) error {
	t.Helper()
	_, err := as.client(t).CoreV1().ConfigMaps(cm.Namespace).Create(t.Context(), cm, metav1.CreateOptions{})
	return err
}

// patch changes a ConfigMap by a merge patch.
func patch(t *testing.T, as user, namespace, name, patch string) error {
	t.Helper()
	_, err := as.client(t).CoreV1().ConfigMaps(namespace).Patch(t.Context(), name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	return err
}

// get reads a ConfigMap, or gives nil if there is none.
func get(t *testing.T, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	return hub.App(namespace, name).Stored(t)
}

// service reads a Service, or gives nil if there is none.
func service(t *testing.T, namespace, name string) *corev1.Service {
	t.Helper()
	service, err := hub.CoreV1().Services(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// mustHeal changes an observed field and waits until the agent has reverted it.
func mustHeal(t *testing.T, namespace, name string) {
	t.Helper()
	hub.Change(t, kit.Services, namespace, name, `{"spec": {"selector": {"app": "other"}}}`)
	kit.Eventually(t, func() string {
		if got := service(t, namespace, name).Spec.Selector["app"]; got != "web" {
			return fmt.Sprintf("the selector of Service %s is %q", name, got)
		}
		return ""
	})
}

// eventuallyState waits until the agent says so of an Application.
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

// eventuallyGone waits until a ConfigMap and the Service of its name are no more.
func eventuallyGone(t *testing.T, namespace, name string) {
	t.Helper()
	kit.Eventually(t, func() string {
		switch {
		case get(t, namespace, name) != nil:
			return name + " is still there"
		case service(t, namespace, name) != nil:
			return "Service " + name + " is still there"
		}
		return ""
	})
}

// complain fails unless the error has the text; "" is for no error.
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
	_, err := as.client(t).CoreV1().ConfigMaps(cm.Namespace).Update(t.Context(), cm, metav1.UpdateOptions{})
	return err
}

// change sends an object back as the user would have it. Agents write the status
// of Applications meanwhile: it is read once more if one did.
func change(t *testing.T, as user, namespace, name string, how func(*corev1.ConfigMap)) error {
	t.Helper()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		cm := get(t, namespace, name)
		how(cm)
		return update(t, as, cm)
	})
}
