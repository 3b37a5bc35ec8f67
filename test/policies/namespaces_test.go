package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/kit"
)

// sample is an object of a kind that agents may write, and a patch that changes it.
type sample struct {
	resource schema.GroupVersionResource
	text     string
	change   string
}

// samples are an object of each kind that krake-workloads allows, except ConfigMaps, which have tests of
// their own, and claims of devices.
func samples() map[string]sample {
	const pod = `{containers: [{name: web, image: "web:1"}]}`
	const template = `{metadata: {labels: {app: web}}, spec: ` + pod + `}`
	const workload = `{selector: {matchLabels: {app: web}}, template: ` + template + `}`
	const image = `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	of := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	return map[string]sample{
		"Pod":                   {core("pods"), `{apiVersion: v1, kind: Pod, spec: ` + pod + `}`, `{"spec":{"containers":[{"name":"web","image":"web:2"}]}}`},
		"Service":               {core("services"), `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`, `{"spec":{"sessionAffinity":"ClientIP"}}`},
		"ServiceAccount":        {core("serviceaccounts"), `{apiVersion: v1, kind: ServiceAccount}`, `{"automountServiceAccountToken":false}`},
		"PersistentVolumeClaim": {core("persistentvolumeclaims"), `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, `{"metadata":{"annotations":{"note":"x"}}}`},
		"ReplicationController": {core("replicationcontrollers"), `{apiVersion: v1, kind: ReplicationController, spec: {replicas: 0, selector: {app: web}, template: ` + template + `}}`, image},
		"Deployment":            {of("apps", "v1", "deployments"), `{apiVersion: apps/v1, kind: Deployment, spec: ` + workload + `}`, image},
		"DaemonSet":             {of("apps", "v1", "daemonsets"), `{apiVersion: apps/v1, kind: DaemonSet, spec: ` + workload + `}`, image},
		"ReplicaSet":            {of("apps", "v1", "replicasets"), `{apiVersion: apps/v1, kind: ReplicaSet, spec: ` + workload + `}`, image},
		"StatefulSet":           {of("apps", "v1", "statefulsets"), `{apiVersion: apps/v1, kind: StatefulSet, spec: ` + workload + `}`, image},
		"Job":                   {of("batch", "v1", "jobs"), `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: web}]}}}}`, `{"spec":{"suspend":true}}`},
		"CronJob":               {of("batch", "v1", "cronjobs"), `{apiVersion: batch/v1, kind: CronJob, spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: web}]}}}}}}`, `{"spec":{"suspend":true}}`},
		"HorizontalPodAutoscaler": {of("autoscaling", "v2", "horizontalpodautoscalers"), `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}}}`,
			`{"spec":{"maxReplicas":3}}`},
		"Ingress":             {of("networking.k8s.io", "v1", "ingresses"), `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}`, `{"spec":{"ingressClassName":"x"}}`},
		"NetworkPolicy":       {of("networking.k8s.io", "v1", "networkpolicies"), `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {}}}`, `{"spec":{"podSelector":{"matchLabels":{"a":"b"}}}}`},
		"PodDisruptionBudget": {of("policy", "v1", "poddisruptionbudgets"), `{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1}}`, `{"spec":{"minAvailable":2}}`},
	}
}

// object returns the sample with a name.
func (s sample) object(name string) *unstructured.Unstructured {
	return habitatOf(s.text, "metadata: {name: "+name+"}")
}

const closedMessage = "namespace %s is closed to agents: use another one, or have the agent write as a service account"

// In a closed namespace an agent makes no object of any kind and takes over none. What it has there
// already, it keeps in order.
func TestAgentsMakeNothingInClosedNamespaces(t *testing.T) {
	namespace := newNamespace(t)
	agents := agent("local").mustClient(t).dynamic
	closed := fmt.Sprintf(closedMessage, namespace)
	closeToAgents(t, namespace)
	for kind, s := range samples() {
		t.Run(kind, func(t *testing.T) {
			theirs, its := server.Dynamic.Resource(s.resource).Namespace(namespace), agents.Resource(s.resource).Namespace(namespace)
			patch := func(name string, patch []byte) error {
				return kit.ErrorOf(its.Patch(t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}))
			}
			ours, disguised := s.object("ours"), s.object("disguised")
			ours.SetLabels(map[string]string{"krake.dev/owned-by": "0123456789abcdef"})
			ours.SetAnnotations(map[string]string{"krake.dev/owner": "demo/a x"})
			disguised.SetAnnotations(map[string]string{"krake.dev/application": "v1"})
			kit.Must(t, kit.ErrorOf(theirs.Create(t.Context(), s.object("theirs"), metav1.CreateOptions{})))
			expect(t, closed, kit.ErrorOf(its.Create(t.Context(), ours, metav1.CreateOptions{})))
			expect(t, closed, kit.ErrorOf(its.Create(t.Context(), disguised, metav1.CreateOptions{})))
			expect(t, closed, patch("theirs", []byte(s.change)))
			expect(t, closed, patch("theirs", []byte(allMarks)))
			expect(t, closed, its.Delete(t.Context(), "theirs", metav1.DeleteOptions{}))

			kit.Must(t, kit.ErrorOf(theirs.Create(t.Context(), ours, metav1.CreateOptions{})))
			expect(t, allowed, patch("ours", []byte(s.change)))
			expect(t, allowed, its.Delete(t.Context(), "ours", metav1.DeleteOptions{}))
		})
	}
	t.Run("others write there", func(t *testing.T) {
		create(t, namespaceEditor, plain(namespace, "plain"))
		kit.Must(t, namespaceEditor.mustClient(t).CoreV1().ConfigMaps(namespace).Delete(t.Context(), "plain", metav1.DeleteOptions{}))
	})
	t.Run("its Applications are none of its objects", func(t *testing.T) {
		cm := admitted.in(t, namespace)
		mustUpdate(t, agent("local"), cm, data("status", "{}"), addFinalizerOf("local"))
		letGo(t, namespace)
	})
	t.Run("it is opened", func(t *testing.T) {
		server.Change(t, kit.Namespaces, "", namespace, `{"metadata": {"labels": {"krake.dev/closed-to-agents": null}}}`)
		kit.EventuallyNil(t, func() error {
			return kit.ErrorOf(agent("local").mustClient(t).CoreV1().ConfigMaps(namespace).Create(t.Context(), with(plain(namespace, "ours"), marked), metav1.CreateOptions{}))
		})
	})
}

// closeToAgents labels a namespace, and waits until the API server knows the label.
func closeToAgents(t *testing.T, namespace string) {
	t.Helper()
	server.Change(t, kit.Namespaces, "", namespace, `{"metadata": {"labels": {"krake.dev/closed-to-agents": "true"}}}`)
	kit.EventuallyTrue(t, namespace+" is not closed", func() bool {
		return agent("local").does(creation(with(plain(namespace, "probe"), marked)))(t.Context()) != nil
	})
}

// There is a sample of each kind that agents may write.
func TestThereIsASampleOfEachKind(t *testing.T) {
	tried := []string{"configmaps"}
	for _, s := range samples() {
		tried = append(tried, strings.TrimSuffix(s.resource.Resource+"."+s.resource.Group, "."))
	}
	for _, kind := range writable(t, "krake-workloads") {
		if !slices.Contains(tried, kind) && !strings.HasSuffix(kind, ".resource.k8s.io") {
			t.Errorf("no sample of %s", kind)
		}
	}
}
