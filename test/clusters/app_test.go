package clusters

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
)

// webManifest is an Application whose health takes a moment, and of which a cluster
// assigns some values; the schema has them observed.
const (
	webManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-settings}
data: {colour: green}
---
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec:
  type: NodePort
  selector: {app: NAME}
  ports: [{port: 80, targetPort: 8080, protocol: TCP}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: web, image: "web:1"}]}
`
	webSchema = `
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec:
  type: null
  clusterIP: null
  ports:
  - {port: null, nodePort: null}
  - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}
`
)

// app is an Application.
type app struct{ types.NamespacedName }

// newApp makes an Application on the hub, for a cluster. NAME stands for its name
// in manifest and schema.
func newApp(t *testing.T, cluster, namespace, name, manifest, schema string) app {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{
			application.FormatAnnotation: application.Format, application.ClusterAnnotation: cluster,
		}},
		Data: map[string]string{application.ManifestKey: strings.ReplaceAll(manifest, "NAME", name)},
	}
	if schema != "" {
		cm.Data[application.ObserverSchemaKey] = strings.ReplaceAll(schema, "NAME", name)
	}
	if _, err := env.hub.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return app{types.NamespacedName{Namespace: namespace, Name: name}}
}

// stored reads the Application's ConfigMap, nil if there is none.
func (a app) stored(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	cm, err := env.hub.CoreV1().ConfigMaps(a.Namespace).Get(t.Context(), a.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

// status reads what the agent of the Application's cluster says.
func (a app) status(t *testing.T) application.Status {
	t.Helper()
	cm := a.stored(t)
	if cm == nil {
		t.Fatalf("there is no Application %s", a)
	}
	read, err := application.Read(cm)
	if err != nil {
		t.Fatal(err)
	}
	return read.Status
}

// patch changes the Application as a user does: by a merge patch.
func (a app) patch(t *testing.T, patch string) {
	t.Helper()
	_, err := env.hub.CoreV1().ConfigMaps(a.Namespace).Patch(t.Context(), a.Name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: "user"})
	if err != nil {
		t.Fatal(err)
	}
}

// annotate has the user set an annotation.
func (a app) annotate(t *testing.T, name, value string) {
	t.Helper()
	a.patch(t, fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, name, value))
}

// delete has the user delete the Application.
func (a app) delete(t *testing.T) {
	t.Helper()
	if err := env.hub.CoreV1().ConfigMaps(a.Namespace).Delete(t.Context(), a.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// settledOn complains unless the Application is on that cluster alone, and runs
// there as its spec is now.
func (a app) settledOn(t *testing.T, cluster string) (complaint string) {
	t.Helper()
	cm := a.stored(t)
	if cm == nil {
		return fmt.Sprintf("there is no Application %s", a)
	}
	read, err := application.Read(cm)
	if err != nil {
		t.Fatal(err)
	}
	status := read.Status
	holders := application.HoldersOf(cm)
	switch {
	case !slices.Equal(holders, []string{cluster}):
		complaint = fmt.Sprintf("is held by %v", holders)
	case status.ClusterName() != cluster:
		complaint = fmt.Sprintf("speaks of cluster %q", status.ClusterName())
	case status.ObservedSpec != read.Spec.Digest():
		complaint = "speaks of another spec"
	case !meta.IsStatusConditionTrue(status.Conditions, application.ReadyCondition):
		complaint = "is not ready"
	case status.State != application.StateRunning:
		complaint = "does not run"
	default:
		return ""
	}
	return fmt.Sprintf("%s, which is to be on %s alone, %s: %s %v", a, cluster, complaint, status.State, status.Conditions)
}

// mustSettle waits until the Application is on that cluster alone, and runs.
func (a app) mustSettle(t *testing.T, cluster string) {
	t.Helper()
	eventually(t, timeout, func() string { return a.settledOn(t, cluster) })
}

// mustGo waits until there is no such Application any more.
func (a app) mustGo(t *testing.T) {
	t.Helper()
	eventually(t, timeout, func() string {
		if cm := a.stored(t); cm != nil {
			return fmt.Sprintf("%s is still there, with %v", a, cm.Finalizers)
		}
		return ""
	})
}

// newNamespace makes a namespace in these control planes.
func newNamespace(t *testing.T, name string, on ...plane) {
	t.Helper()
	for _, each := range on {
		_, err := each.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// setting reads a value of a ConfigMap, and says if there is one.
func setting(ctx context.Context, at plane, namespace, name, key string) (value string, err error) {
	cm, err := at.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return cm.Data[key], nil
}

// mustHave waits until a ConfigMap has a value.
func mustHave(t *testing.T, limit time.Duration, at plane, namespace, name, key, want string) {
	t.Helper()
	eventually(t, limit, func() string {
		got, err := setting(t.Context(), at, namespace, name, key)
		switch {
		case err != nil:
			return err.Error()
		case got != want:
			return fmt.Sprintf("%s of ConfigMap %s/%s is %q, want %q", key, namespace, name, got, want)
		}
		return ""
	})
}

// change has somebody change a value of a ConfigMap.
func change(ctx context.Context, at plane, namespace, name, key, value string) error {
	_, err := at.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"data": {%q: %q}}`, key, value), metav1.PatchOptions{FieldManager: "somebody"})
	return err
}

func mustChange(t *testing.T, at plane, namespace, name, key, value string) {
	t.Helper()
	if err := change(t.Context(), at, namespace, name, key, value); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl as the administrator of a cluster, and gives what it printed
// to both outputs.
func kubectl(t *testing.T, at *cluster.Cluster, arguments ...string) string {
	t.Helper()
	command := exec.Command(at.Kubectl(), append([]string{"--kubeconfig", at.Kubeconfig()}, arguments...)...)
	text, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, text)
	}
	return string(text)
}

// eventually waits until check finds nothing to complain about.
func eventually(t *testing.T, limit time.Duration, check func() (complaint string)) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", limit, complaint)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
