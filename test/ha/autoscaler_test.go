package ha

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	webManifest = kit.WebManifest
	// imageSchema does not observe replicas, so that any client may set them.
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

// The autoscaler of the real controller manager scales a Deployment. If the schema does not
// observe the replicas, the agent never changes them. If it does, the condition Contended
// names the autoscaler. An autoscaler scales up to its minimum without metrics, which this
// cluster does not have. The message of the second case has the remedy; the test applies
// it, and the fight ends.
func TestAutoscalerWorksInPeaceOrIsNamed(t *testing.T) {
	t.Run("replicas are not observed", autoscalerWorksInPeace)
	t.Run("replicas are observed", autoscalerIsNamed)
}

func autoscalerWorksInPeace(t *testing.T) {
	t.Parallel()
	namespace := newWeb(t, imageSchema)
	begin := hub.Mark(t)
	autoscale(t, namespace, 3)
	eventuallyScaled(t, namespace, 3)
	autoscale(t, namespace, 4)
	eventuallyScaled(t, namespace, 4)
	awaitCalm(t, namespace)

	// A repair of the image shows that the agent has seen all that; it does not change
	// the replicas.
	hub.Change(t, kit.Deployments, namespace, "web", `{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:evil"}]}}}}`)
	hub.EventuallyField(t, "web:1", kit.Deployments, namespace, "web", "spec", "template", "spec", "containers", 0, "image")
	awaitCalm(t, namespace)
	made := repairs(t, begin, namespace)
	if len(made) != 1 || !slices.Equal(made[0].PatchPaths(t), []string{"/spec/template/spec/containers/0/image"}) {
		t.Errorf("want one repair, of the image: %v", made)
	}
	if got := scalings(t, begin, namespace); len(got) != 2 {
		t.Errorf("the autoscaler has scaled %d times, want 2, as nobody is against it: %v", len(got), got)
	}
	if got := replicas(t, namespace); got != 4 {
		t.Errorf("there are %d replicas, want 4", got)
	}
	if condition := hub.App(namespace, "web").Condition(t, application.ContendedCondition); condition.Status != metav1.ConditionFalse {
		t.Errorf("condition Contended is %v", condition)
	}
}

func autoscalerIsNamed(t *testing.T) {
	t.Parallel()
	namespace := newWeb(t, "")
	begin := hub.Mark(t)
	autoscale(t, namespace, 3)
	names := []string{
		"apps/v1 Deployment " + namespace + "/web", "spec.replicas",
		"kube-controller-manager (scale)", "leave spec.replicas out of the observer schema",
	}
	kit.Eventually(t, func() string {
		condition := hub.App(namespace, "web").Condition(t, application.ContendedCondition)
		if condition.Status != metav1.ConditionTrue || condition.Reason != "CompetingWriter" {
			return fmt.Sprintf("condition Contended is %v", condition)
		}
		return missing(condition.Message, names)
	})
	kit.Eventually(t, func() string { return missing(contendedNote(t, namespace), names) })
	// These are the autoscaler's changes meanwhile, and our answers.
	made, scaled := repairs(t, begin, namespace), scalings(t, begin, namespace)
	t.Logf("contended after %d repairs of %d scalings", len(made), len(scaled))
	if len(made) < 5 {
		t.Errorf("%d repairs, want five before it is a fight: %v", len(made), made)
	}
	for _, r := range made {
		if got := r.PatchPaths(t); !slices.Equal(got, []string{"/spec/replicas"}) {
			t.Errorf("a repair of %v, want one of the replicas", got)
		}
	}

	// The remedy.
	hub.App(namespace, "web").Patch(t, string(kit.JSON(t, map[string]any{"data": map[string]any{application.ObserverSchemaKey: imageSchema}})))
	eventuallyScaled(t, namespace, 3)
	awaitCalm(t, namespace)
	peace := hub.Mark(t)
	autoscale(t, namespace, 4)
	eventuallyScaled(t, namespace, 4)
	awaitCalm(t, namespace)
	if made := repairs(t, peace, namespace); len(made) > 0 {
		t.Errorf("replicas are not observed any more, and there is %v", made)
	}
	if condition := hub.App(namespace, "web").Condition(t, application.ContendedCondition); condition.Status != metav1.ConditionFalse {
		t.Errorf("nobody is against the autoscaler any more, and condition Contended is %v", condition)
	}
}

// newWeb creates the Application and waits until it runs.
func newWeb(t *testing.T, schema string) (namespace string) {
	t.Helper()
	namespace = hub.NewNamespaceOfApps(t, "ha")
	hub.CreateApp(t, kit.Application(namespace, "web", webManifest, kit.Schema(schema))).MustBe(t, application.StateRunning)
	awaitCalm(t, namespace)
	return namespace
}

// contendedNote returns the note of the Application's Event about the fight.
func contendedNote(t *testing.T, namespace string) string {
	t.Helper()
	events, err := hub.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	kit.Must(t, err)
	for _, event := range events.Items {
		if event.Regarding.Kind == "ConfigMap" && event.Regarding.Name == "web" && event.Reason == "Contended" {
			return event.Note
		}
	}
	return ""
}

// missing returns the names that a text does not have.
func missing(text string, names []string) string {
	for _, name := range names {
		if !strings.Contains(text, name) {
			return fmt.Sprintf("%q does not name %s", text, name)
		}
	}
	return ""
}

// autoscale creates or changes the autoscaler of the Deployment.
func autoscale(t *testing.T, namespace string, minimum int) {
	t.Helper()
	hub.Apply(t, fmt.Sprintf(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: %s}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: %d, maxReplicas: 5}
`, namespace, minimum))
}

// eventuallyScaled waits until the autoscaler has this many replicas, in its status
// too.
func eventuallyScaled(t *testing.T, namespace string, to int32) {
	t.Helper()
	kit.Eventually(t, func() string {
		scaler, err := hub.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		kit.Must(t, err)
		if status, live := scaler.Status, replicas(t, namespace); live != to || status.CurrentReplicas != to {
			return fmt.Sprintf("there are %d replicas, want %d; the autoscaler says %d of %d: %v", live, to, status.CurrentReplicas, status.DesiredReplicas, status.Conditions)
		}
		return ""
	})
}

func replicas(t *testing.T, namespace string) int32 {
	t.Helper()
	scale, err := hub.AppsV1().Deployments(namespace).GetScale(t.Context(), "web", metav1.GetOptions{})
	kit.Must(t, err)
	return scale.Spec.Replicas
}

// repairs returns the agents' accepted patches of the Deployment since the mark.
func repairs(t *testing.T, begin kit.Mark, namespace string) []kit.Request {
	t.Helper()
	return begin.Requests(t, func(r kit.Request) bool {
		return r.User.Username == kit.LocalAgent && r.IsWrite() && r.IsAccepted() && r.Object.Namespace == namespace && r.Object.Resource == "deployments"
	})
}

// scalings returns those of the autoscaler since the mark.
func scalings(t *testing.T, begin kit.Mark, namespace string) []kit.Request {
	t.Helper()
	return begin.Requests(t, func(r kit.Request) bool {
		return r.User.Username == autoscalerUser && r.IsWrite() && r.IsAccepted() && r.Object.Namespace == namespace && r.Object.Subresource == "scale"
	})
}
