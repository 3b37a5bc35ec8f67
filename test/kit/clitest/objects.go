package clitest

import (
	_ "embed"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// Deployment is an object of the Application web.
const Deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {team: shop}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1
        env: [{name: PASSWORD, value: hunter2}]
`

// Service is another one.
const Service = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, ports: [{port: 80}]}
`

// ServiceSchema observes the type of the Service, and its ports with a node port.
const ServiceSchema = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: null
  ports:
  - {port: null, nodePort: null}
  - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 2}
`

// Prepared returns the ConfigMap demo/web after admission, with the UID of a stored object.
func Prepared(t *testing.T, manifest, observerSchema string, annotations ...string) *corev1.ConfigMap {
	t.Helper()
	cm := Created("web", annotations...)
	cm.Data[application.ManifestKey] = manifest
	if observerSchema != "" {
		cm.Data[application.ObserverSchemaKey] = observerSchema
	}
	check.Must(t, mutate.PrepareForCreate(t.Context().Err, cm).Refusals.ToAggregate())
	cm.UID, cm.ResourceVersion = "1", "1"
	return cm
}

// AdmittedOf returns the Application of [Prepared].
func AdmittedOf(t *testing.T, manifest, observerSchema string, annotations ...string) *application.Application {
	t.Helper()
	app, err := application.Read(Prepared(t, manifest, observerSchema, annotations...))
	check.Must(t, err)
	return app
}

// ExpectedOf returns the desired objects.
func ExpectedOf(t *testing.T, app *application.Application) []plan.Expected {
	t.Helper()
	expected, err := plan.Expect(app, plan.NoTypes)
	check.Must(t, err)
	return expected
}

// MarkedAs returns the object with the marks of an Application of demo, as a live object.
func MarkedAs(name string, uid types.UID, live map[string]any) map[string]any {
	live["metadata"].(map[string]any)["namespace"] = "demo"
	id, _ := manifest.Identify(live)
	return application.Marks(types.NamespacedName{Namespace: "demo", Name: name}, uid, id).On(live)
}

// Parsed returns the one object of a text.
func Parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	check.Must(t, err)
	values, err := manifest.Decode(encoded)
	if err != nil || len(values) != 1 {
		t.Fatalf("%d values: %v", len(values), err)
	}
	return values[0].(map[string]any)
}

// Scaled is a Deployment that kubectl has created, an autoscaler has scaled, and a user has
// edited. A webhook has put a sidecar in front.
//
//go:embed testdata/scaled.yaml
var Scaled string

// DeploymentSchema is an observer schema of the Deployment.
//
//go:embed testdata/deploymentSchema.yaml
var DeploymentSchema string
