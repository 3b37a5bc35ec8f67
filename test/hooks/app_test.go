package hooks

import (
	"context"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// web is a workload, and the Service with its shutdown endpoint.
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
type app struct{ kit.App }

// settings are annotations of an Application, without their prefix.
type settings map[string]string

// newApp makes an Application of a manifest on the hub.
func newApp(t *testing.T, namespace, name, manifest string, wanted settings) app {
	t.Helper()
	return app{env.hub.CreateApp(t, applicationOf(namespace, name, manifest, wanted))}
}

func applicationOf(namespace, name, manifest string, wanted settings) *corev1.ConfigMap {
	cm := kit.Application(namespace, name, manifest)
	for name, value := range wanted {
		kit.Annotation(name, value)(cm)
	}
	return cm
}

// and returns these settings together with others.
func (w settings) and(more settings) settings {
	all := maps.Clone(w)
	maps.Copy(all, more)
	return all
}

// mustGo waits until the Application is gone, and fails if any of its objects remains.
func (a app) mustGo(t *testing.T, on ...*kit.Plane) {
	t.Helper()
	a.MustGo(t)
	a.checkGone(t, on...)
}

// checkGone fails if any object of the Application remains on a cluster.
func (a app) checkGone(t *testing.T, on ...*kit.Plane) {
	t.Helper()
	for _, each := range on {
		if left := a.objects(t, each); len(left) > 0 {
			t.Errorf("of %s there is still %v", a, left)
		}
	}
}

// objects returns the objects of a cluster that are marked as the Application's.
func (a app) objects(t *testing.T, at *kit.Plane) []string {
	t.Helper()
	var found []string
	for _, resource := range []schema.GroupVersionResource{kit.Deployments, kit.Services, kit.Secrets, kit.ConfigMaps} {
		marked := metav1.ListOptions{LabelSelector: application.OwnedByLabel}
		list, err := at.Dynamic.Resource(resource).Namespace(a.Namespace).List(context.Background(), marked)
		kit.Must(t, err)
		for _, object := range list.Items {
			if strings.HasPrefix(object.GetAnnotations()[application.OwnerAnnotation], a.String()+" ") {
				found = append(found, strings.ToLower(object.GetKind())+" "+object.GetName())
			}
		}
	}
	return found
}

// newNamespace creates a namespace for one test, with hooks enabled for Applications of
// the local cluster.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := kit.UniqueName("hooks")
	env.hub.CreateNamespace(t, name)
	env.local.grant(t, name)
	return name
}
