package e2e

import (
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// A value that the API server stores in another form is no drift: half a CPU becomes
// "500m", and a zero is omitted. A change of such a value is drift, and only its repair
// is written.
func TestAnotherNotationIsNoDrift(t *testing.T) {
	namespace := newNamespace(t)
	before := auditMark(t)
	createApplication(t, namespace, "nginx", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, creationTimestamp: null}
spec:
  replicas: 2
  minReadySeconds: 0
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec:
      nodeSelector: {}
      containers:
      - name: nginx
        image: "nginx:1.27"
        env: [{name: EMPTY, value: ""}]
        resources: {limits: {cpu: 0.5, memory: 1024Mi}}
`, "")
	eventuallyState(t, "RUNNING", namespace, "nginx")
	hub.Change(t, kit.Deployments, namespace, "nginx", `{"spec": {"minReadySeconds": 7}}`)
	hub.EventuallyField(t, nil, kit.Deployments, namespace, "nginx", "spec", "minReadySeconds")
	checkRepairs(t, eventuallyRepairs(t, before, 1, namespace), "/spec/minReadySeconds")
}

// "In an aligned list an injected sidecar at index 0 is no drift where the maximum
// allows it": the containers of a Deployment are matched by name.
func TestAContainerIsFoundByItsName(t *testing.T) {
	namespace := newNamespace(t)
	createApplication(t, namespace, "nginx", nginxManifest, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec:
  template:
    spec:
      containers:
      - image: null
      - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 0}
`)
	eventuallyState(t, "RUNNING", namespace, "nginx")
	before := auditMark(t)
	hub.Change(t, kit.Deployments, namespace, "nginx", `{"spec": {"template": {"spec": {"containers": [
		{"name": "sidecar", "image": "sidecar:1"}, {"name": "nginx", "image": "nginx:evil"}]}}}}`)
	hub.EventuallyField(t, "nginx:1.27", kit.Deployments, namespace, "nginx", "spec", "template", "spec", "containers", 1, "image")
	checkRepairs(t, eventuallyRepairs(t, before, 1, namespace), "/spec/template/spec/containers/1/image")
	if got := kit.Field(hub.Get(t, kit.Deployments, namespace, "nginx"), "spec", "template", "spec", "containers", 0, "image"); got != "sidecar:1" {
		t.Errorf("the image of the sidecar is %v", got)
	}
}

// For a list of unknown type, the user states the key of its elements. A key that no
// element has is refused, with its path.
func TestAKeyThatIsStated(t *testing.T) {
	text, err := tryKubectl(t, applicationYAML(t, newNamespace(t), "song", `
apiVersion: music.example.com/v1
kind: Song
metadata: {name: parts}
spec: {parts: [{label: a, value: 1}]}
`, `
apiVersion: music.example.com/v1
kind: Song
metadata: {name: parts}
spec:
  parts:
  - value: null
  - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 0, observer_schema_list_key: key}
`), "create", "-f", "-")
	if err == nil || !strings.Contains(text, "spec.observer_schema[0].spec.parts") || !strings.Contains(text, "has no key") {
		t.Errorf("a key that no element has is answered with %v: %s", err, text)
	}
}
