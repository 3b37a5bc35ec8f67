package ha

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	webManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1"}
`
	// imageSchema leaves replicas to whoever wants them.
	imageSchema = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - image: null
      - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}
`
	autoscalerUser = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
)

// Must show 5: "An HPA from the real controller manager on a Deployment whose
// schema does not observe replicas: never touched; on one whose schema does:
// contended, named." Below its minimum an autoscaler scales without metrics, of
// which there are none here. The message of the second case has the way out, and
// the test goes it: then both have peace.
func TestHPA(t *testing.T) {
	t.Run("replicas are not observed", autoscalerWorksInPeace)
	t.Run("replicas are observed", autoscalerIsNamed)
}

func autoscalerWorksInPeace(t *testing.T) {
	namespace := newWeb(t, imageSchema)
	begin := auditMark(t)
	createAutoscaler(t, namespace, 3)
	eventuallyScaled(t, namespace, 3)
	setMinimum(t, namespace, 4)
	eventuallyScaled(t, namespace, 4)
	awaitCalm(t, namespace)

	// A repair of the image shows that the agent has seen all that; it leaves the
	// replicas as they are.
	setImage(t, namespace, "web:evil")
	eventuallyImage(t, namespace, "web:1")
	awaitCalm(t, namespace)
	made := repairs(t, begin, namespace)
	if len(made) != 1 || !slices.Equal(paths(t, made[0]), []string{"/spec/template/spec/containers/0/image"}) {
		t.Errorf("want one repair, of the image: %v", made)
	}
	if got := scalings(t, begin, namespace); len(got) != 2 {
		t.Errorf("the autoscaler has scaled %d times, want 2, as nobody is against it: %v", len(got), got)
	}
	if got := replicas(t, namespace); got != 4 {
		t.Errorf("there are %d replicas, want 4", got)
	}
	if condition := conditionOf(t, namespace, application.ContendedCondition); condition.Status != metav1.ConditionFalse {
		t.Errorf("condition Contended is %v", condition)
	}
}

func autoscalerIsNamed(t *testing.T) {
	namespace := newWeb(t, "")
	begin := auditMark(t)
	createAutoscaler(t, namespace, 3)
	names := []string{
		"apps/v1 Deployment " + namespace + "/web", "spec.replicas",
		"kube-controller-manager (scale)", "leave spec.replicas out of the observer schema",
	}
	eventually(t, func() string {
		condition := conditionOf(t, namespace, application.ContendedCondition)
		if condition.Status != metav1.ConditionTrue || condition.Reason != "RivalManager" {
			return fmt.Sprintf("condition Contended is %v", condition)
		}
		return missing(condition.Message, names)
	})
	eventually(t, func() string { return missing(contendedNote(t, namespace), names) })
	// What it does in the mean time, and how often we answer.
	made, scaled := repairs(t, begin, namespace), scalings(t, begin, namespace)
	t.Logf("contended after %d repairs of %d scalings", len(made), len(scaled))
	if len(made) < 5 {
		t.Errorf("%d repairs, want five before it is a fight: %v", len(made), made)
	}
	for _, r := range made {
		if got := paths(t, r); !slices.Equal(got, []string{"/spec/replicas"}) {
			t.Errorf("a repair of %v, want one of the replicas", got)
		}
	}

	// The way out.
	setSchema(t, namespace, imageSchema)
	eventuallyScaled(t, namespace, 3)
	awaitCalm(t, namespace)
	peace := auditMark(t)
	setMinimum(t, namespace, 4)
	eventuallyScaled(t, namespace, 4)
	awaitCalm(t, namespace)
	if made := repairs(t, peace, namespace); len(made) > 0 {
		t.Errorf("replicas are not observed any more, and there is %v", made)
	}
	if condition := conditionOf(t, namespace, application.ContendedCondition); condition.Status != metav1.ConditionFalse {
		t.Errorf("nobody is against the autoscaler any more, and condition Contended is %v", condition)
	}
}

// newWeb creates the Application and waits until it runs.
func newWeb(t *testing.T, schema string) (namespace string) {
	t.Helper()
	namespace = newNamespace(t)
	createApplication(t, namespace, "web", webManifest, schema)
	eventually(t, func() string {
		if state := webOf(t, namespace).State; state != application.StateRunning {
			return fmt.Sprintf("the Application is %s", state)
		}
		return ""
	})
	awaitCalm(t, namespace)
	return namespace
}

// webOf reads the status of the Application.
func webOf(t *testing.T, namespace string) (status application.Status) {
	t.Helper()
	app, err := env.client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text := app.Data["status"]; text != "" {
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			t.Fatalf("read the status of the Application: %v in %s", err, text)
		}
	}
	return status
}

// conditionOf reads a condition of the Application; it is empty if there is none.
func conditionOf(t *testing.T, namespace, name string) metav1.Condition {
	t.Helper()
	if condition := meta.FindStatusCondition(webOf(t, namespace).Conditions, name); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

// contendedNote is what the Event of the Application says of the fight.
func contendedNote(t *testing.T, namespace string) string {
	t.Helper()
	events, err := env.client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.Regarding.Kind == "ConfigMap" && event.Regarding.Name == "web" && event.Reason == "Contended" {
			return event.Note
		}
	}
	return ""
}

// missing tells what a text does not name.
func missing(text string, names []string) string {
	for _, name := range names {
		if !strings.Contains(text, name) {
			return fmt.Sprintf("%q does not name %s", text, name)
		}
	}
	return ""
}

func createAutoscaler(t *testing.T, namespace string, minimum int32) {
	t.Helper()
	scaler := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MinReplicas:    &minimum, MaxReplicas: 5,
		},
	}
	if _, err := env.client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Create(t.Context(), scaler, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func setMinimum(t *testing.T, namespace string, minimum int32) {
	t.Helper()
	_, err := env.client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Patch(t.Context(), "web", types.MergePatchType,
		fmt.Appendf(nil, `{"spec": {"minReplicas": %d}}`, minimum), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// eventuallyScaled waits until the autoscaler has so many replicas, and knows it.
func eventuallyScaled(t *testing.T, namespace string, to int32) {
	t.Helper()
	eventually(t, func() string {
		scaler, err := env.client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if status, live := scaler.Status, replicas(t, namespace); live != to || status.CurrentReplicas != to {
			return fmt.Sprintf("there are %d replicas, want %d; the autoscaler says %d of %d: %v", live, to, status.CurrentReplicas, status.DesiredReplicas, status.Conditions)
		}
		return ""
	})
}

func replicas(t *testing.T, namespace string) int32 {
	t.Helper()
	scale, err := env.client.AppsV1().Deployments(namespace).GetScale(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return scale.Spec.Replicas
}

func setImage(t *testing.T, namespace, image string) {
	t.Helper()
	_, err := env.client.AppsV1().Deployments(namespace).Patch(t.Context(), "web", types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": %q}]}}}}`, image), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		t.Fatal(err)
	}
}

func eventuallyImage(t *testing.T, namespace, image string) {
	t.Helper()
	eventually(t, func() string {
		live, err := env.client.AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := live.Spec.Template.Spec.Containers[0].Image; got != image {
			return fmt.Sprintf("the image is %s, want %s", got, image)
		}
		return ""
	})
}

func setSchema(t *testing.T, namespace, schema string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"data": map[string]any{"spec.observer_schema": schema}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.client.CoreV1().ConfigMaps(namespace).Patch(t.Context(), "web", types.MergePatchType, text, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// repairs are the agents' accepted patches of the Deployment since the mark.
func repairs(t *testing.T, begin mark, namespace string) []request {
	t.Helper()
	return begin.requests(t, func(r request) bool {
		return r.User.Username == agentUser && r.isWrite() && r.isAccepted() && r.Object.Namespace == namespace && r.Object.Resource == "deployments"
	})
}

// scalings are those of the autoscaler since the mark.
func scalings(t *testing.T, begin mark, namespace string) []request {
	t.Helper()
	return begin.requests(t, func(r request) bool {
		return r.User.Username == autoscalerUser && r.isWrite() && r.isAccepted() && r.Object.Namespace == namespace && r.Object.Subresource == "scale"
	})
}

// paths are what a repair writes, its guard left out.
func paths(t *testing.T, repair request) []string {
	t.Helper()
	var operations []struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(repair.Body, &operations); err != nil {
		t.Fatalf("the body of %s is no JSON Patch: %v", repair, err)
	}
	var paths []string
	for _, operation := range operations {
		if operation.Path != "/metadata/resourceVersion" {
			paths = append(paths, operation.Path)
		}
	}
	return paths
}
