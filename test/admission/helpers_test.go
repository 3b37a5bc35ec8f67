package admission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/application"
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
	if err := env.installation.Look(); err != nil {
		t.Fatal(err)
	}
	name := makeNamespace(t)
	bindUsers(t, name)
	return name
}

// makeNamespace makes a namespace that goes with the test.
func makeNamespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("admission-%06d", rand.IntN(1e6))
	_, err := env.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := env.client.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return name
}

// newApplication is an Application as a user writes it.
func newApplication(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Annotations: map[string]string{application.FormatAnnotation: application.Format},
		},
		Data: map[string]string{application.ManifestKey: strings.ReplaceAll(manifest, "name: web", "name: "+name)},
	}
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
	cm, err := env.client.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

// service reads a Service, or gives nil if there is none.
func service(t *testing.T, namespace, name string) *corev1.Service {
	t.Helper()
	service, err := env.client.CoreV1().Services(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// changeService changes a Service as somebody else would.
func changeService(t *testing.T, namespace, name, patch string) {
	t.Helper()
	_, err := env.client.CoreV1().Services(namespace).Patch(t.Context(), name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		t.Fatal(err)
	}
}

// mustHeal changes an observed field and waits until the agent has reverted it.
func mustHeal(t *testing.T, namespace, name string) {
	t.Helper()
	changeService(t, namespace, name, `{"spec": {"selector": {"app": "other"}}}`)
	eventually(t, func() string {
		if got := service(t, namespace, name).Spec.Selector["app"]; got != "web" {
			return fmt.Sprintf("the selector of Service %s is %q", name, got)
		}
		return ""
	})
}

// eventually waits until check finds nothing to complain about.
func eventually(t *testing.T, check func() (complaint string)) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", timeout, complaint)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// eventuallyState waits until the agent says so of an Application.
func eventuallyState(t *testing.T, want application.State, namespace, name string) {
	t.Helper()
	eventually(t, func() string {
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
	eventually(t, func() string {
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

// applicationYAML is what a user hands to kubectl.
func applicationYAML(t *testing.T, cm *corev1.ConfigMap) string {
	t.Helper()
	text, err := yaml.Marshal(cm)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
