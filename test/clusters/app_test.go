package clusters

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// webManifest is an Application that becomes healthy after a moment, with values that
// the cluster assigns; the schema observes them.
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

// app is an Application on the hub.
type app struct{ kit.App }

// newApp creates an Application for a cluster on the hub. NAME stands for its name in
// manifest and schema.
func newApp(t *testing.T, cluster, namespace, name, manifest, schema string) app {
	t.Helper()
	return app{env.hub.CreateApp(t, kit.Application(namespace, name, manifest, kit.Schema(schema), kit.On(cluster)))}
}

// status reads the status that the agent of the Application's cluster writes.
func (a app) status(t *testing.T) application.Status {
	t.Helper()
	read := a.Read(t)
	if read == nil {
		t.Fatalf("there is no Application %s", a)
	}
	return read.Status
}

// awaitReconciled waits until the condition Reconciled is true.
func (a app) awaitReconciled(t *testing.T, limit time.Duration, status metav1.ConditionStatus, reason string) {
	t.Helper()
	kit.EventuallyWithin(t, limit, func() string {
		if is := a.Condition(t, application.ReconciledCondition); is.Status != status || is.Reason != reason {
			return fmt.Sprintf("%s says: %v, want %s, %s", a, is, status, reason)
		}
		return ""
	})
}

// newNamespace creates a namespace in these control planes.
func newNamespace(t *testing.T, name string, on ...*kit.Plane) {
	t.Helper()
	for _, each := range on {
		each.CreateNamespace(t, name)
	}
}

// isWork selects the writes that change something other than a Lease or an Event.
func isWork(r kit.Request) bool { return r.IsWork() && r.Object.Resource != "events" }

// setting reads a value of a ConfigMap; nil if it does not exist.
func setting(t *testing.T, at *kit.Plane, namespace, name, key string) any {
	t.Helper()
	return kit.Field(at.Get(t, kit.ConfigMaps, namespace, name), "data", key)
}

// mustHave waits until a ConfigMap has a value.
func mustHave(t *testing.T, limit time.Duration, at *kit.Plane, namespace, name, key, want string) {
	t.Helper()
	kit.EventuallyWithin(t, limit, func() string {
		if got := setting(t, at, namespace, name, key); got != want {
			return fmt.Sprintf("%s of ConfigMap %s/%s is %v, want %q", key, namespace, name, got, want)
		}
		return ""
	})
}
