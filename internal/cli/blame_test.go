package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/test/check"
)

// scaled is a Deployment that kubectl has created, an autoscaler has scaled, and a user has
// edited. A webhook has put a sidecar in front.
const scaled = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {team: shop}
  uid: "7"
  annotations: {deployment.kubernetes.io/revision: "1"}
  managedFields:
  - manager: kubectl-client-side-apply
    operation: Update
    apiVersion: apps/v1
    time: "2026-01-02T10:00:00Z"
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {f:labels: {.: {}, f:team: {}}}
      f:spec:
        f:strategy: {f:type: {}}
        f:selector: {}
        f:template:
          f:metadata: {f:labels: {.: {}, f:app: {}}}
          f:spec:
            f:containers:
              k:{"name":"web"}: {.: {}, f:name: {}, f:env: {.: {}, 'k:{"name":"PASSWORD"}': {.: {}, f:name: {}, f:value: {}}}}
  - manager: kubectl-edit
    operation: Update
    apiVersion: apps/v1
    time: "2026-01-02T11:00:00Z"
    fieldsType: FieldsV1
    fieldsV1: {f:spec: {f:template: {f:spec: {f:containers: {'k:{"name":"web"}': {f:image: {}}}}}}}
  - manager: kube-controller-manager
    operation: Update
    apiVersion: apps/v1
    subresource: scale
    fieldsType: FieldsV1
    fieldsV1: {f:spec: {f:replicas: {}}}
  - manager: kube-controller-manager
    operation: Update
    apiVersion: apps/v1
    subresource: status
    time: "2026-01-02T11:30:00Z"
    fieldsType: FieldsV1
    fieldsV1: {f:metadata: {f:annotations: {f:deployment.kubernetes.io/revision: {}}}, f:status: {f:replicas: {}}}
  - manager: injector
    operation: Update
    apiVersion: apps/v1
    time: "2026-01-02T10:00:00Z"
    fieldsType: FieldsV1
    fieldsV1: {f:spec: {f:template: {f:spec: {f:containers: {'k:{"name":"sidecar"}': {.: {}, f:name: {}, f:image: {}}}}}}}
spec:
  replicas: 5
  revisionHistoryLimit: 10
  strategy: {type: Recreate}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: sidecar, image: proxy:1}
      - name: web
        image: nginx:2
        env: [{name: PASSWORD, value: hunter2}]
status: {replicas: 5}
`

const deploymentSchema = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: null
  revisionHistoryLimit: null
  strategy: {type: null}
  template:
    spec:
      containers:
      - {name: null, image: null, env: [{value: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]}
      - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 0}
`

func blamed(t *testing.T) lens.Object {
	t.Helper()
	app := admittedOf(t, deployment, deploymentSchema)
	app.Learned = []map[string]any{parsed(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {strategy: {type: Recreate}}}`)}
	expected := expectedOf(t, app)
	return lens.Compare(app, expected[0], markedAs("web", "1", parsed(t, scaled)), false)
}

// Each observed field is listed with its value, its present place, and its last writer.
func TestBlame(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	check.Must(t, printBlames(&out, []lens.Object{blamed(t)}, false, now))
	want := `
apps/v1 Deployment demo/web
DRIFT   PATH                                            VALUE      DESIRED             MANAGER                           OPERATION   SINCE
*       spec.replicas                                   5          2                   kube-controller-manager (scale)   Update      <unknown>
-       spec.revisionHistoryLimit                       10         (to be pinned)      <none>                            <none>      <unknown>
-       spec.strategy.type                              Recreate   Recreate (pinned)   kubectl-client-side-apply         Update      120m
-       spec.template.spec.containers[1].env[0].value   ***        ***                 kubectl-client-side-apply         Update      120m
*       spec.template.spec.containers[1].image          nginx:2    nginx:1             kubectl-edit                      Update      60m
-       spec.template.spec.containers[1].name           web        web                 kubectl-client-side-apply         Update      120m
`
	check.Equal(t, "table", strings.TrimPrefix(want, "\n"), out.String())
}

// A missing object has no fields with a writer, and a list has its length.
func TestBlameOfWhatIsMissing(t *testing.T) {
	app := admittedOf(t, service, serviceSchema)
	expected := expectedOf(t, app)
	var out bytes.Buffer
	short := markedAs("web", "1", parsed(t, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: []}}`))
	blames := []lens.Object{lens.Compare(app, expected[0], nil, false), lens.Compare(app, expected[0], short, false)}
	check.Must(t, printBlames(&out, blames, true, time.Time{}))
	want := `
v1 Service demo/web
  there is no such object

v1 Service demo/web
DRIFT   PATH                     VALUE        DESIRED         MANAGER   OPERATION   SINCE
-       spec.ports[0].nodePort   <none>       <none>          <none>    <none>      <unknown>
-       spec.ports[0].port       <none>       80              <none>    <none>      <unknown>
-       spec.type                NodePort     NodePort        <none>    <none>      <unknown>
*       spec.ports               0 elements   more elements   <none>    <none>      <none>
`
	check.Equal(t, "table", strings.TrimPrefix(want, "\n"), out.String())
}
