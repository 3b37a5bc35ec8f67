package guard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

const toEvil = `{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:evil"}]}}}}`

// A denied request changes nothing. A change of fields that are not observed passes, and so does one of a held object.
// A user who breaks the glass passes, too: with an Event, and counted.
func TestDenied(t *testing.T) {
	t.Parallel()
	namespace := newWeb(t, kit.Annotation("guard", "deny"))
	_, err := patch(t.Context(), anna, namespace, toEvil)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.template.spec.containers[web].image is managed by Application "+namespace+"/web and will be set back to web:1") {
		t.Errorf("the answer is %v", err)
	}
	// Until here no client has changed the Deployment, so that its controller is at rest: the API server asks a guard again
	// about a patch of an object that another client writes meanwhile.
	before := asked(t)["bypassed"]
	said, err := patch(t.Context(), saviour, namespace, toEvil, metav1.DryRunAll)
	kit.Must(t, err)
	mustTell(t, said, "will be set back to web:1")
	said, err = patch(t.Context(), saviour, namespace, toEvil)
	kit.Must(t, err)
	mustTell(t, said, "will be set back to web:1")
	hub.EventuallyField(t, "web:1", kit.Deployments, namespace, "web", "spec", "template", "spec", "containers", 0, "image")
	if after := asked(t)["bypassed"]; after != before+2 {
		t.Errorf("%v requests have broken the glass, want 2", after-before)
	}
	kit.Eventually(t, func() string {
		events, err := hub.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		kit.Must(t, err)
		found := 0
		for _, event := range events.Items {
			if event.Reason == "GlassBroken" && strings.Contains(event.Note, saviour) {
				found++
			}
		}
		if found != 2 { // one of the Application, and one of the object; none of the dry run
			return fmt.Sprintf("%d Events name who has broken the glass, want 2", found)
		}
		return ""
	})

	said, err = patch(t.Context(), anna, namespace, `{"spec": {"minReadySeconds": 3}, "metadata": {"labels": {"team": "a"}}}`)
	if err != nil || len(said) > 0 {
		t.Errorf("fields that are not observed: %q, %v", said, err)
	}
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	said, err = patch(t.Context(), anna, namespace, fmt.Sprintf(`{"metadata": {"annotations": {"krake.dev/hold-until": %q}}, "spec": {"replicas": 2}}`, until))
	if err != nil || len(said) > 0 {
		t.Errorf("a hold lets through, in the same request: %q, %v", said, err)
	}
}

// The guard reports a deletion that the agent makes good. One of the Application, of its namespace, or of an object that
// left the manifest passes.
func TestDeletions(t *testing.T) {
	t.Parallel()
	namespace := newWeb(t, kit.Annotation("guard", "deny"))
	client, said, err := clientOf(anna)
	kit.Must(t, err)
	deployments := client.Resource(kit.Deployments).Namespace(namespace)
	err = deployments.Delete(t.Context(), "web", metav1.DeleteOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "deployment/web is managed by Application "+namespace+"/web and will be created again") {
		t.Errorf("the answer is %v", err)
	}
	hub.App(namespace, "web").Annotate(t, "guard", "warn")
	settle(t, namespace)
	said.texts = nil
	kit.Must(t, deployments.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	mustTell(t, said.texts, "will be created again")
	hub.EventuallyField(t, int64(1), kit.Deployments, namespace, "web", "spec", "replicas")

	hub.App(namespace, "web").Annotate(t, "guard", "deny")
	settle(t, namespace)
	kit.Must(t, hub.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
	kit.Eventually(t, func() string {
		if _, err := hub.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("namespace %s still exists: %v", namespace, err)
		}
		return ""
	})

	namespace = newWeb(t, kit.Annotation("guard", "deny"))
	app := hub.App(namespace, "web")
	app.Delete(t)
	app.MustGo(t)
	if left := hub.Get(t, kit.Deployments, namespace, "web"); left != nil {
		t.Error("the Deployment outlives its Application")
	}
}

// Controllers are never refused: a rollout, the autoscaler, the garbage collector. Neither is an eviction, nor what
// users do with what belongs to a Deployment.
func TestTheSystemIsNeverRefused(t *testing.T) {
	t.Parallel()
	namespace := newWeb(t, kit.Annotation("guard", "deny"), kit.Schema(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: null, revisionHistoryLimit: null}
`))
	// A rollout, and back.
	hub.Kubectl(t, "set", "image", "deployment/web", "web=web:2", "--namespace="+namespace)
	hub.Kubectl(t, "rollout", "status", "deployment/web", "--namespace="+namespace, "--timeout=60s")
	hub.Kubectl(t, "rollout", "undo", "deployment/web", "--namespace="+namespace)
	hub.Kubectl(t, "rollout", "status", "deployment/web", "--namespace="+namespace, "--timeout=60s")
	hub.EventuallyField(t, "web:1", kit.Deployments, namespace, "web", "spec", "template", "spec", "containers", 0, "image")
	// The autoscaler. The replicas of this Application are not observed.
	hub.Apply(t, fmt.Sprintf(autoscaler, namespace))
	hub.EventuallyField(t, int64(3), kit.Deployments, namespace, "web", "spec", "replicas")
	hub.Kubectl(t, "delete", "hpa", "web", "--namespace="+namespace)
	// An eviction, as in a drain.
	var pods *corev1.PodList
	kit.Eventually(t, func() string {
		var err error
		if pods, err = hub.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"}); err != nil || len(pods.Items) == 0 {
			return fmt.Sprintf("there are no Pods: %v", err)
		}
		return ""
	})
	kit.Must(t, evict(t.Context(), namespace, pods.Items[0].Name))
	// The garbage collector removes ReplicaSets and Pods of a deleted Application.
	app := hub.App(namespace, "web")
	app.Delete(t)
	app.MustGo(t)
	kit.Eventually(t, func() string {
		sets, err := hub.AppsV1().ReplicaSets(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(sets.Items) > 0 {
			return fmt.Sprintf("%d ReplicaSets are left: %v", len(sets.Items), err)
		}
		return ""
	})

	// The autoscaler is not refused either where the replicas are observed: the agent and it are competing writers then.
	namespace = newWeb(t, kit.Annotation("guard", "deny"))
	begin := hub.Mark(t)
	hub.Apply(t, fmt.Sprintf(autoscaler, namespace))
	kit.Eventually(t, func() string {
		for _, r := range begin.Requests(t, kit.In(namespace), kit.By("system:serviceaccount:kube-system:horizontal-pod-autoscaler")) {
			if r.IsForbidden() {
				t.Fatalf("the autoscaler is refused: %s", r)
			}
			if r.IsWrite() && r.Resource() == "deployments/scale" && r.IsAccepted() {
				return ""
			}
		}
		return "the autoscaler has not scaled yet"
	})
}

// autoscaler scales up to its minimum without metrics, which this cluster does not have.
const autoscaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: %s}
spec:
  minReplicas: 3
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
`

func evict(ctx context.Context, namespace, pod string) error {
	_, err := kit.TryKubectl(ctx, hub.Cluster, fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q, "namespace": %q}}`, pod, namespace),
		"create", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", namespace, pod), "-f", "-")
	return err
}
