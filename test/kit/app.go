package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/signature"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// WebManifest is a Deployment web with one replica of one container.
const WebManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1"}
`

// An Option sets a part of an Application other than its manifest.
type Option func(*corev1.ConfigMap)

// Application returns an Application as a user writes it. NAME in manifest and schema
// stands for its name.
func Application(namespace, name, manifest string, options ...Option) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Annotations: map[string]string{application.FormatAnnotation: application.Format},
		},
		Data: map[string]string{},
	}
	if manifest != "" {
		cm.Data[application.ManifestKey] = strings.ReplaceAll(manifest, "NAME", name)
	}
	for _, option := range options {
		option(cm)
	}
	if err := application.CompressManifest(cm); err != nil {
		panic(err) // a buffer takes everything
	}
	return cm
}

// Schema sets the observer schema of an Application. Empty means none.
func Schema(text string) Option {
	return func(cm *corev1.ConfigMap) {
		if text != "" {
			cm.Data[application.ObserverSchemaKey] = strings.ReplaceAll(text, "NAME", cm.Name)
		}
	}
}

// On sets the cluster of an Application.
func On(cluster string) Option { return Annotation("cluster", cluster) }

// Annotation sets an annotation of an Application, without the prefix krake.dev/.
func Annotation(name, value string) Option {
	return func(cm *corev1.ConfigMap) { cm.Annotations[application.Prefix+name] = value }
}

// Data sets an entry of the data of an Application.
func Data(key, value string) Option {
	return func(cm *corev1.ConfigMap) { cm.Data[key] = value }
}

// JSON encodes a value.
func JSON(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	Must(t, err)
	return text
}

// YAML returns an object as a user passes it to kubectl.
func YAML(t testing.TB, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	Must(t, err)
	return string(text)
}

// App is an Application on a hub.
type App struct {
	types.NamespacedName

	hub *Plane
}

// CreateApp creates an Application.
func (p *Plane) CreateApp(t testing.TB, cm *corev1.ConfigMap) App {
	t.Helper()
	_, err := p.CoreV1().ConfigMaps(cm.Namespace).Create(lasting(t), cm, metav1.CreateOptions{})
	Must(t, err)
	return p.App(cm.Namespace, cm.Name)
}

// Sign signs an Application with the key of the webhook, as a person can do who has read it.
func (p *Plane) Sign(t testing.TB, cm *corev1.ConfigMap) {
	t.Helper()
	secret, err := p.CoreV1().Secrets(application.SystemNamespace).Get(lasting(t), signature.PrivateSecret, metav1.GetOptions{})
	Must(t, err)
	signer, err := signature.ParseSigner(secret.Data[signature.PrivateKey])
	Must(t, err)
	signer.Sign(cm)
}

// App returns the Application of that name, whether or not it exists.
func (p *Plane) App(namespace, name string) App {
	return App{types.NamespacedName{Namespace: namespace, Name: name}, p}
}

// Stored reads the ConfigMap of the Application; nil if it does not exist.
func (a App) Stored(t testing.TB) *corev1.ConfigMap {
	t.Helper()
	cm, err := a.hub.CoreV1().ConfigMaps(a.Namespace).Get(lasting(t), a.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	Must(t, err)
	return cm
}

// Read reads the Application; nil if it does not exist.
func (a App) Read(t testing.TB) *application.Application {
	t.Helper()
	cm := a.Stored(t)
	if cm == nil {
		return nil
	}
	read, err := application.Read(cm)
	Must(t, err)
	return read
}

// ReadFor reads the Application as the agent of a cluster does; nil if it does not
// exist.
func (a App) ReadFor(t testing.TB, cluster string) *application.Application {
	t.Helper()
	cm := a.Stored(t)
	if cm == nil {
		return nil
	}
	read, err := application.ReadFor(cm, cluster)
	Must(t, err)
	return read
}

// TryPatch changes the Application as a user does, with a merge patch.
func (a App) TryPatch(ctx context.Context, patch string) error {
	_, err := a.hub.CoreV1().ConfigMaps(a.Namespace).Patch(ctx, a.Name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: "user"})
	return err
}

// Patch is [App.TryPatch] for a test.
func (a App) Patch(t testing.TB, patch string) {
	t.Helper()
	Must(t, a.TryPatch(lasting(t), patch))
}

// Annotate sets an annotation, whose name is without the prefix krake.dev/.
func (a App) Annotate(t testing.TB, name, value string) {
	t.Helper()
	a.Patch(t, fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, application.Prefix+name, value))
}

// Delete deletes the Application and does not wait for its end.
func (a App) Delete(t testing.TB) {
	t.Helper()
	Must(t, a.hub.CoreV1().ConfigMaps(a.Namespace).Delete(lasting(t), a.Name, metav1.DeleteOptions{}))
}

// Is returns a complaint unless the agent reports this state for the current spec. A
// RUNNING Application must also be Ready.
func (a App) Is(t testing.TB, want application.State) (complaint string) {
	t.Helper()
	read := a.Read(t)
	switch {
	case read == nil:
		return fmt.Sprintf("there is no Application %s", a)
	case read.Status.State != want:
		return fmt.Sprintf("%s is %s, want %s: %v", a, read.Status.State, want, read.Status.Conditions)
	case want == application.StateRunning && read.Status.ObservedSpec != read.Spec.Digest():
		return fmt.Sprintf("%s runs with another spec", a)
	case want == application.StateRunning && !meta.IsStatusConditionTrue(read.Status.Conditions, application.ReadyCondition):
		return fmt.Sprintf("%s is not ready: %v", a, read.Status.Conditions)
	}
	return ""
}

// MustBe waits until [App.Is] has no complaint.
func (a App) MustBe(t testing.TB, want application.State) {
	t.Helper()
	Eventually(t, func() string { return a.Is(t, want) })
}

// SettledOn returns a complaint unless only the cluster holds the Application, and it
// runs there with the current spec.
func (a App) SettledOn(t testing.TB, cluster string) (complaint string) {
	t.Helper()
	cm := a.Stored(t)
	if cm == nil {
		return fmt.Sprintf("there is no Application %s", a)
	}
	if holders := application.HoldersOf(cm); !slices.Equal(holders, []string{cluster}) {
		return fmt.Sprintf("%s is held by %v, want %s alone", a, holders, cluster)
	}
	read, err := application.Read(cm)
	Must(t, err)
	if name := read.Status.ClusterName(); name != cluster {
		return fmt.Sprintf("the status of %s is of cluster %q, want %q", a, name, cluster)
	}
	return a.Is(t, application.StateRunning)
}

// MustSettle waits until [App.SettledOn] has no complaint.
func (a App) MustSettle(t testing.TB, cluster string) {
	t.Helper()
	Eventually(t, func() string { return a.SettledOn(t, cluster) })
}

// Condition reads a condition; it is empty if it does not exist.
func (a App) Condition(t testing.TB, name string) metav1.Condition {
	t.Helper()
	if read := a.Read(t); read != nil {
		if condition := meta.FindStatusCondition(read.Status.Conditions, name); condition != nil {
			return *condition
		}
	}
	return metav1.Condition{}
}

// Says waits until the message of a condition contains a text, and returns the condition.
func (a App) Says(t testing.TB, condition, text string) (found metav1.Condition) {
	t.Helper()
	Eventually(t, func() string {
		read := a.Read(t)
		if read == nil {
			return fmt.Sprintf("there is no Application %s", a)
		}
		is := meta.FindStatusCondition(read.Status.Conditions, condition)
		if is == nil || !strings.Contains(is.Message, text) {
			return fmt.Sprintf("condition %s of %s does not say %q: %v", condition, a, text, is)
		}
		found = *is
		return ""
	})
	return found
}

// IsGone returns a complaint while the Application exists.
func (a App) IsGone(t testing.TB) (complaint string) {
	t.Helper()
	if cm := a.Stored(t); cm != nil {
		return fmt.Sprintf("%s is still there, with %v: %s", a, cm.Finalizers, cm.Data[application.StatusKey])
	}
	return ""
}

// MustGo waits until the Application is gone.
func (a App) MustGo(t testing.TB) {
	t.Helper()
	Eventually(t, func() string { return a.IsGone(t) })
}
