package hooks

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// web is a workload, and the Service by which it is asked to shut down.
const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: shutdown}
spec: {selector: {app: web}, ports: [{port: 8080}]}
`

// app is an Application.
type app struct{ types.NamespacedName }

// wishes are annotations of an Application, without their prefix.
type wishes map[string]string

// newApp makes an Application of a manifest on the hub.
func newApp(t *testing.T, namespace, name, manifest string, wanted wishes) app {
	t.Helper()
	cm := applicationOf(namespace, name, wanted)
	cm.Data = map[string]string{application.ManifestKey: manifest}
	create(t, cm)
	return app{types.NamespacedName{Namespace: namespace, Name: name}}
}

func applicationOf(namespace, name string, wanted wishes) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{application.FormatAnnotation: application.Format}}}
	for name, value := range wanted {
		cm.Annotations[application.Prefix+name] = value
	}
	return cm
}

func create(t *testing.T, cm *corev1.ConfigMap) {
	t.Helper()
	if _, err := env.hub.CoreV1().ConfigMaps(cm.Namespace).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// and gives these wishes with others.
func (w wishes) and(more wishes) wishes {
	all := maps.Clone(w)
	maps.Copy(all, more)
	return all
}

// stored reads the Application's ConfigMap, nil if there is none.
func (a app) stored(t *testing.T, at plane) *corev1.ConfigMap {
	t.Helper()
	cm, err := at.CoreV1().ConfigMaps(a.Namespace).Get(context.Background(), a.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

// read reads the Application as the agent of a cluster does, nil if there is none.
func (a app) read(t *testing.T, cluster string) *application.Application {
	t.Helper()
	cm := a.stored(t, env.hub)
	if cm == nil {
		return nil
	}
	read, err := application.ReadFor(cm, cluster)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// try changes the Application as a user does: by a merge patch.
func (a app) try(ctx context.Context, patch string) error {
	_, err := env.hub.CoreV1().ConfigMaps(a.Namespace).Patch(ctx, a.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "user"})
	return err
}

// wish has the user set an annotation.
func (a app) wish(t *testing.T, name, value string) {
	t.Helper()
	if err := a.try(t.Context(), fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, application.Prefix+name, value)); err != nil {
		t.Fatal(err)
	}
}

// delete has the user delete the Application.
func (a app) delete(t *testing.T) {
	t.Helper()
	if err := env.hub.CoreV1().ConfigMaps(a.Namespace).Delete(t.Context(), a.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// is complains unless the agent of the Application's cluster says that it is in this
// state, for what its spec is now.
func (a app) is(t *testing.T, want application.State) string {
	t.Helper()
	read := a.read(t, application.LocalCluster)
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

func (a app) mustBe(t *testing.T, want application.State) {
	t.Helper()
	eventually(t, func() string { return a.is(t, want) })
}

// mustSay waits until a condition has a message with this text.
func (a app) mustSay(t *testing.T, condition, text string) {
	t.Helper()
	eventually(t, func() string {
		read := a.read(t, application.LocalCluster)
		if read == nil {
			return fmt.Sprintf("there is no Application %s", a)
		}
		found := meta.FindStatusCondition(read.Status.Conditions, condition)
		if found == nil || !strings.Contains(found.Message, text) {
			return fmt.Sprintf("%s does not say %q in %s: %v", a, text, condition, found)
		}
		return ""
	})
}

// isGone complains while there is such an Application.
func (a app) isGone(t *testing.T) string {
	t.Helper()
	if cm := a.stored(t, env.hub); cm != nil {
		return fmt.Sprintf("%s is still there, with %v: %s", a, cm.Finalizers, cm.Data[application.StatusKey])
	}
	return ""
}

// mustGo waits until there is no such Application any more, nor anything of it.
func (a app) mustGo(t *testing.T, on ...plane) {
	t.Helper()
	eventually(t, func() string { return a.isGone(t) })
	for _, each := range on {
		if left := a.objects(t, each); len(left) > 0 {
			t.Errorf("of %s there is still %v", a, left)
		}
	}
}

// objects are those of the Application on a cluster, by their own word.
func (a app) objects(t *testing.T, at plane) []string {
	t.Helper()
	ctx, marked := context.Background(), metav1.ListOptions{LabelSelector: application.OwnedByLabel}
	var found []string
	add := func(kind string, object metav1.Object) {
		if strings.HasPrefix(object.GetAnnotations()[application.OwnerAnnotation], a.String()+" ") {
			found = append(found, kind+" "+object.GetName())
		}
	}
	deployments, err := at.AppsV1().Deployments(a.Namespace).List(ctx, marked)
	must(t, err)
	services, err := at.CoreV1().Services(a.Namespace).List(ctx, marked)
	must(t, err)
	secrets, err := at.CoreV1().Secrets(a.Namespace).List(ctx, marked)
	must(t, err)
	configMaps, err := at.CoreV1().ConfigMaps(a.Namespace).List(ctx, marked)
	must(t, err)
	for i := range deployments.Items {
		add("deployment", &deployments.Items[i])
	}
	for i := range services.Items {
		add("service", &services.Items[i])
	}
	for i := range secrets.Items {
		add("secret", &secrets.Items[i])
	}
	for i := range configMaps.Items {
		add("configmap", &configMaps.Items[i])
	}
	return found
}

// newNamespace makes a namespace for one test, in which Applications of the local
// cluster have hooks.
func newNamespace(t *testing.T) string {
	t.Helper()
	if err := env.installation.Look(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("hooks-%06d", rand.IntN(1e6))
	makeNamespace(t, name, env.hub)
	env.local.grant(t, name)
	return name
}

func makeNamespace(t *testing.T, name string, on ...plane) {
	t.Helper()
	for _, each := range on {
		_, err := each.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
	}
}

// kubectl runs kubectl as the administrator of a cluster, and gives what it printed.
func kubectl(t *testing.T, at plane, arguments ...string) string {
	t.Helper()
	text, err := tryKubectl(at, "", arguments...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, text)
	}
	return text
}

// tryKubectl runs kubectl with an input and gives what it printed to both outputs.
func tryKubectl(at plane, input string, arguments ...string) (string, error) {
	command := exec.Command(at.Kubectl(), append([]string{"--kubeconfig", at.Kubeconfig()}, arguments...)...)
	command.Stdin = strings.NewReader(input)
	text, err := command.CombinedOutput()
	return string(text), err
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
		time.Sleep(50 * time.Millisecond)
	}
}

func complaintOf(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
