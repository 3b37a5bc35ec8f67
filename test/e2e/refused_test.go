package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// refused is a drift or an edit of which the API server refuses a part.
type refused struct {
	name, manifest, schema string
	// edit is the new manifest, empty for a drift.
	edit string
	// object is the object that the drift changes, as kubectl names it, and drift the merge patches.
	object string
	drift  []string
	// want has values of the object by JSONPath without braces.
	want map[string]string
	// says is a part of the condition Reconciled, empty if the Application runs in the end.
	says string
}

// workload returns a Deployment with this spec beside the selector, and with this in its container.
func workload(spec, container, volumes string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: store}
spec:
  replicas: 1
  %s
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      containers:
      - name: main
        image: registry.example.org/store:4
        %s
      %s
`, spec, container, volumes)
}

const (
	template   = ".spec.template.spec"
	mainImage  = template + ".containers[0].image"
	storeImage = "registry.example.org/store:4"
)

// inMain returns a patch of the container that also replaces its image.
func inMain(container, others string) string {
	return fmt.Sprintf(`{"spec":{"template":{"spec":{%s"containers":[{"name":"main","image":"evil.example.org/x:1"%s}]}}}}`, others, container)
}

func refusedCases() []refused {
	return []refused{
		{
			name: "strategy of a Deployment", manifest: workload("strategy: {type: Recreate}", "", ""), object: "deployment/store",
			drift: []string{`{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":3}}}}`, inMain("", "")},
			want:  map[string]string{".spec.strategy": `{"type":"Recreate"}`, mainImage: storeImage},
		},
		{
			name: "strategy of a Deployment, in one write with the image", manifest: workload("strategy: {type: Recreate}", "", ""), object: "deployment/store",
			drift: []string{`{"spec":{"strategy":{"type":"RollingUpdate"},"template":{"spec":{"containers":[{"name":"main","image":"evil.example.org/x:1"}]}}}}`},
			want:  map[string]string{".spec.strategy": `{"type":"Recreate"}`, mainImage: storeImage},
		},
		{
			name: "an edit of strategy and image", manifest: strings.ReplaceAll(workload("", "", ""), "store:4", "store:3"), edit: workload("strategy: {type: Recreate}", "", ""),
			object: "deployment/store", want: map[string]string{".spec.strategy": `{"type":"Recreate"}`, mainImage: storeImage},
		},
		{
			name: "strategy of a StatefulSet", object: "statefulset/store",
			manifest: strings.Replace(workload("serviceName: store\n  updateStrategy: {type: OnDelete}", "", ""), "kind: Deployment", "kind: StatefulSet", 1),
			drift:    []string{`{"spec":{"replicas":4,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2}}}}`},
			want:     map[string]string{".spec.updateStrategy": `{"type":"OnDelete"}`, ".spec.replicas": "1"},
		},
		{
			name: "source of a volume", manifest: workload("", "", "volumes: [{name: conf, configMap: {name: settings}}]"), object: "deployment/store",
			drift: []string{inMain("", `"volumes":[{"name":"conf","emptyDir":{"medium":"Memory"}}],`)},
			want:  map[string]string{template + ".volumes[0].configMap.name": "settings", template + ".volumes[0].emptyDir": "", mainImage: storeImage},
		},
		{
			name: "another source of a volume", manifest: workload("", "", "volumes: [{name: conf, emptyDir: {sizeLimit: 1Gi}}]"), object: "deployment/store",
			drift: []string{inMain("", `"volumes":[{"name":"conf","secret":{"secretName":"keys"}}],`)},
			want:  map[string]string{template + ".volumes[0].emptyDir.sizeLimit": "1Gi", template + ".volumes[0].secret": "", mainImage: storeImage},
		},
		{
			name: "a value that became a reference", manifest: workload("", "env: [{name: LEVEL, value: low}]", ""), object: "deployment/store",
			drift: []string{inMain(`,"env":[{"name":"LEVEL","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]`, "")},
			want:  map[string]string{template + ".containers[0].env": `[{"name":"LEVEL","value":"low"}]`, mainImage: storeImage},
		},
		{
			name: "a reference that became a value", object: "deployment/store",
			manifest: workload("", "env: [{name: PASS, valueFrom: {secretKeyRef: {name: keys, key: pass}}}]", ""),
			drift:    []string{inMain(`,"env":[{"name":"PASS","value":"1234"}]`, "")},
			want: map[string]string{
				template + ".containers[0].env[0].value": "", template + ".containers[0].env[0].valueFrom.secretKeyRef.name": "keys", mainImage: storeImage,
			},
		},
		{
			name: "handler of a probe", manifest: workload("", "livenessProbe: {httpGet: {path: /alive, port: 8080}}", ""), object: "deployment/store",
			drift: []string{inMain(`,"livenessProbe":{"exec":{"command":["true"]}}`, "")},
			want: map[string]string{
				template + ".containers[0].livenessProbe.httpGet.path": "/alive", template + ".containers[0].livenessProbe.exec": "", mainImage: storeImage,
			},
		},
		{
			name: "handler of a probe that is observed in part", object: "deployment/store",
			manifest: workload("", "readinessProbe: {httpGet: {path: /alive, port: 8080, scheme: HTTP}}", ""),
			schema: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: store}, spec: {template: {spec: {containers: [
				{image: null, readinessProbe: {httpGet: {path: null, scheme: null}}}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]}}}}`,
			drift: []string{inMain(`,"readinessProbe":{"httpGet":null,"tcpSocket":{"port":1}}`, "")},
			want: map[string]string{
				template + ".containers[0].readinessProbe.httpGet": `{"path":"/alive","port":8080,"scheme":"HTTP"}`, template + ".containers[0].readinessProbe.tcpSocket": "", mainImage: storeImage,
			},
		},
		{
			name: "handler of a hook", manifest: workload("", "lifecycle: {preStop: {exec: {command: [sleep, '3']}}}", ""), object: "deployment/store",
			drift: []string{inMain(`,"lifecycle":{"preStop":{"httpGet":{"port":80}}}`, "")},
			want: map[string]string{
				template + ".containers[0].lifecycle.preStop.exec.command": `["sleep","3"]`, template + ".containers[0].lifecycle.preStop.httpGet": "", mainImage: storeImage,
			},
		},
		{
			name: "a budget of the other sort", object: "pdb/store", manifest: `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: store, labels: {rank: high}}
spec: {minAvailable: 3, unhealthyPodEvictionPolicy: AlwaysAllow, selector: {matchLabels: {app: store}}}`,
			drift: []string{`{"metadata":{"labels":{"rank":"low"}},"spec":{"minAvailable":null,"maxUnavailable":"50%","unhealthyPodEvictionPolicy":"IfHealthyBudget"}}`},
			want: map[string]string{
				".spec.minAvailable": "3", ".spec.maxUnavailable": "", ".spec.unhealthyPodEvictionPolicy": "AlwaysAllow", ".metadata.labels.rank": "high",
			},
		},
		{
			name: "type of a metric", object: "hpa/store", manifest: `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: store}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: store}
  maxReplicas: 6
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}`,
			drift: []string{`{"spec":{"maxReplicas":90,"metrics":[{"type":"Pods","pods":{"metric":{"name":"hits"},"target":{"type":"AverageValue","averageValue":"9"}}}]}}`},
			want: map[string]string{
				".spec.metrics[0].type": "Resource", ".spec.metrics[0].pods": "", ".spec.metrics[0].resource.name": "cpu", ".spec.maxReplicas": "6",
			},
		},
		{
			name: "a peer of another sort", object: "networkpolicy/store", manifest: `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: store}
spec:
  podSelector: {matchLabels: {app: store}}
  policyTypes: [Ingress]
  ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]`,
			drift: []string{`{"metadata":{"labels":{"x":"y"}},"spec":{"podSelector":{"matchLabels":{"app":"x"}},"ingress":[{"from":[{"ipBlock":{"cidr":"0.0.0.0/0"}}]}]}}`},
			want: map[string]string{
				".spec.ingress[0].from[0].ipBlock": "", ".spec.ingress[0].from[0].podSelector.matchLabels.app": "web", ".spec.podSelector.matchLabels.app": "store", ".metadata.labels.x": "y",
			},
		},
		{
			name: "a backend of another sort", object: "ingress/store", manifest: `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: store}
spec: {ingressClassName: a, defaultBackend: {service: {name: store, port: {number: 80}}}}`,
			drift: []string{`{"spec":{"ingressClassName":"b","defaultBackend":{"service":null,"resource":{"apiGroup":"example.org","kind":"Bucket","name":"x"}}}}`},
			want:  map[string]string{".spec.ingressClassName": "a", ".spec.defaultBackend.resource": "", ".spec.defaultBackend.service.name": "store"},
		},
		{
			name: "a selector that cannot change, beside an image", manifest: workload("", "", ""), object: "deployment/store",
			edit: strings.NewReplacer("app: store", "app: shop", "store:4", "store:5").Replace(workload("", "", "")),
			want: map[string]string{".spec.selector.matchLabels.app": "store", mainImage: "registry.example.org/store:5"},
			says: "spec.selector: Invalid value: field is immutable: undo the change in the Application, or delete the object",
		},
		{
			name: "a Job that cannot change, beside a label", object: "job/task", manifest: taskWith("1", "old"), edit: taskWith("2", "new"),
			want: map[string]string{".metadata.labels.team": "new", template + ".containers[0].image": "registry.example.org/task:1"},
			says: "spec.template: Invalid value: field is immutable: undo the change in the Application, or delete the object",
		},
		{
			name: "an immutable ConfigMap, beside a label", object: "configmap/pinned", manifest: pinned("1", "old"), edit: pinned("2", "new"),
			want: map[string]string{".metadata.labels.team": "new", ".data.size": "1"},
			says: "data: Forbidden: field is immutable when `immutable` is set: undo the change in the Application, or delete the object",
		},
		{
			name: "fields of a StatefulSet that cannot change, beside one that can", object: "statefulset/store",
			manifest: strings.Replace(workload("serviceName: store", "", ""), "kind: Deployment", "kind: StatefulSet", 1),
			edit:     strings.NewReplacer("kind: Deployment", "kind: StatefulSet", "replicas: 1", "replicas: 2").Replace(workload("serviceName: other\n  podManagementPolicy: Parallel", "", "")),
			want:     map[string]string{".spec.replicas": "2", ".spec.serviceName": "store"},
			says:     "spec: Forbidden: updates to statefulset spec for fields other than 'replicas'",
		},
	}
}

func taskWith(version, team string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: task, labels: {team: %s}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example.org/task:%s"}]`, team, version)
}

func pinned(size, team string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: pinned, labels: {team: %s}}
immutable: true
data: {size: %q}`, team, size)
}

// One refused field shields no other: what the API server accepts is as desired, also where a value that is
// not observed has to go first, and the status says what it refuses.
func TestOneRefusedFieldShieldsNoOther(t *testing.T) {
	kit.Long(t, "many objects, of which each waits for a pause")
	namespace := newNamespace(t)
	for _, c := range refusedCases() {
		t.Run(c.name, func(t *testing.T) {
			createApplication(t, namespace, "nginx", c.manifest, c.schema)
			defer remove(t, namespace, "nginx")
			eventuallyReconciled(t, namespace, "nginx")
			awaitCalm(t, namespace)
			before := auditMark(t)
			for _, patch := range c.drift {
				kit.Must(t, change(t, namespace, c.object, types.MergePatchType, patch))
			}
			if c.edit != "" {
				respec(t, namespace, "nginx", c.edit)
			}
			kit.Eventually(t, func() string {
				live := find(t, namespace, c.object)
				for path, want := range c.want {
					if got := jsonPath(t, live, path); got != want {
						return fmt.Sprintf("%s is %q, want %q: %s", path, got, want, hub.App(namespace, "nginx").Condition(t, application.ReconciledCondition).Message)
					}
				}
				return ""
			})
			if c.says != "" {
				hub.App(namespace, "nginx").Says(t, application.ReconciledCondition, c.says)
			} else {
				eventuallyReconciled(t, namespace, "nginx")
			}
			checkRequests(t, before, namespace, len(c.drift)+1)
		})
	}
}

// checkRequests fails if the agent made more dry runs than it may, or more changes than drifts.
func checkRequests(t *testing.T, since kit.Mark, namespace string, drifts int) {
	t.Helper()
	var trials, changes int
	for _, r := range since.Requests(t, ofAgent, kit.In(namespace), func(r kit.Request) bool { return r.Verb == "patch" && r.Object.Resource != "configmaps" }) {
		switch {
		case strings.Contains(r.URI, "dryRun=All"):
			trials++
		case r.IsAccepted():
			changes++
		}
	}
	if changes > 2*drifts || trials > 17*drifts {
		t.Errorf("%d changes and %d dry runs for %d drifts", changes, trials, drifts)
	}
}

const nodePortPath = ".spec.ports[0].nodePort"

const nodePort = `
apiVersion: v1
kind: Service
metadata: {name: %s}
spec: {type: NodePort, selector: {app: x}, ports: [{port: 80, nodePort: %s}]}`

// A Service is created when the port that it asks for is free, without a change of the Application.
func TestATakenPortIsTriedAgain(t *testing.T) {
	namespace, other := newNamespace(t), hub.NewNamespace(t, "e2e")
	hub.Make(t, other, fmt.Sprintf(nodePort, "first", "30917"))
	createApplication(t, namespace, "nginx", fmt.Sprintf(nodePort, "second", "30917"), "")
	hub.App(namespace, "nginx").Says(t, application.ReconciledCondition, "provided port is already allocated")
	kit.Must(t, hub.CoreV1().Services(other).Delete(t.Context(), "first", metav1.DeleteOptions{}))
	eventuallyReconciled(t, namespace, "nginx")
	if port := look(t, namespace, "service/second", nodePortPath); port != "30917" {
		t.Errorf("the port is %s", port)
	}
}

// A learned port that is taken meanwhile is forgotten: the manifest does not ask for it.
func TestALearnedPortThatIsTakenIsForgotten(t *testing.T) {
	namespace, other := newNamespace(t), hub.NewNamespace(t, "e2e")
	createApplication(t, namespace, "nginx", `{apiVersion: v1, kind: Service, metadata: {name: entry}, spec: {type: NodePort, selector: {app: x}, ports: [{port: 80}]}}`, `
apiVersion: v1
kind: Service
metadata: {name: entry}
spec:
  type: null
  ports: [{port: null, nodePort: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]`)
	eventuallyReconciled(t, namespace, "nginx")
	former := look(t, namespace, "service/entry", nodePortPath)
	app := hub.App(namespace, "nginx")
	app.Annotate(t, "mode", "suspend")
	app.Says(t, application.ReadyCondition, "suspended")
	kit.Must(t, hub.CoreV1().Services(namespace).Delete(t.Context(), "entry", metav1.DeleteOptions{}))
	hub.Make(t, other, fmt.Sprintf(nodePort, "thief", former))
	app.Annotate(t, "mode", "enforce")
	eventuallyReconciled(t, namespace, "nginx")
	if look(t, namespace, "service/entry", nodePortPath) == former {
		t.Errorf("the port is still %s", former)
	}
}

// A refused value is tried again as soon as the definition of its kind changes, or the Application does.
func TestARefusalEndsWithItsCause(t *testing.T) {
	define := func(maximum int) {
		defineKind(t, "pace.example.com", "Tempo", fmt.Sprintf("beats: {type: integer, maximum: %d}, title: {type: string}", maximum))
	}
	define(100)
	namespace := newNamespace(t)
	tempo := func(beats int, title string) string {
		return fmt.Sprintf(`{apiVersion: pace.example.com/v1, kind: Tempo, metadata: {name: allegro}, spec: {beats: %d, title: %s}}`, beats, title)
	}
	createApplication(t, namespace, "nginx", tempo(90, "old"), "")
	eventuallyReconciled(t, namespace, "nginx")
	respec(t, namespace, "nginx", tempo(140, "new"))
	app := hub.App(namespace, "nginx")
	app.Says(t, application.ReconciledCondition, "spec.beats: Invalid value")
	if title := look(t, namespace, "tempo/allegro", ".spec.title"); title != "new" {
		t.Errorf("the title is %s", title)
	}
	define(200)
	eventuallyReconciled(t, namespace, "nginx")
	if beats := look(t, namespace, "tempo/allegro", ".spec.beats"); beats != "140" {
		t.Errorf("%s beats", beats)
	}
}
