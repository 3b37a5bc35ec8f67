package strict

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// An installation of two Applications, the objects of a kind and its definition, that are created in the wrong order: nothing of the first
// is created before the second is ready, no request is refused, and neither fails at any time.
func TestObjectsAfterTheirDefinition(t *testing.T) {
	w := wide
	const objects, kinds = "app-objects", "app-kinds"
	begin, namespace := w.Mark(t), w.namespace(t)
	w.grantAccount(t, namespace)
	definition, role, gadget := cutKind(t, namespace)
	states := w.watchStates(t, namespace)

	w.apply(t, namespace, objects, gadget, kit.Annotation("after", kinds))
	w.says(t, namespace, objects, "DependencyNotReady", "Application "+kinds+": not found on cluster local")
	w.apply(t, namespace, kinds, definition+"---"+role, kit.Annotation("deletion-policy", "delete"))
	w.reconciled(t, namespace, kinds)
	w.reconciled(t, namespace, objects)

	made := work(t, begin, "")
	checkAccount(t, made, namespace)
	for _, write := range made {
		if write.Status.Code >= http.StatusBadRequest {
			t.Errorf("refused: %s", write)
		}
	}
	if last := made[len(made)-1]; last.Object.Resource != "gadgets" {
		t.Errorf("the last write is not the gadget's: %s", kit.List(made))
	}
	for _, name := range []string{objects, kinds} {
		if drifts := w.App(namespace, name).Read(t).Status.Drifts; len(drifts) > 0 {
			t.Errorf("the history of %s has %v", name, drifts)
		}
	}
	if seen := states(); strings.Contains(seen, string(application.StateFailed)) {
		t.Errorf("an Application has failed:%s", seen)
	} else {
		t.Logf("the states:%s", seen)
	}

	// It has begun, so it is repaired whatever becomes of the other one.
	gadgets := schema.GroupVersionResource{Group: namespace + ".example.com", Version: "v1", Resource: "gadgets"}
	w.App(namespace, kinds).Annotate(t, "mode", string(application.Suspend))
	kit.Eventually(t, func() string {
		if c := w.App(namespace, kinds).Condition(t, application.ReadyCondition); c.Reason != "Suspended" {
			return "it is not suspended: " + c.Reason
		}
		return ""
	})
	w.Change(t, gadgets, namespace, "first", `{"spec": {"size": 2}}`)
	w.EventuallyField(t, int64(1), gadgets, namespace, "first", "spec", "size")
	w.App(namespace, kinds).Annotate(t, "mode", string(application.Enforce))
	w.gone(t, namespace, objects, kinds)
}

// cutKind returns the three documents of ownKind.
func cutKind(t *testing.T, namespace string) (definition, role, gadget string) {
	t.Helper()
	documents := strings.Split(strings.ReplaceAll(ownKind, "NAME", namespace), "---")
	if len(documents) != 3 {
		t.Fatalf("%d documents", len(documents))
	}
	return documents[0], documents[1], documents[2]
}

// watchStates records the states of the Applications of a namespace. The function that it returns lists them.
func (w *world) watchStates(t *testing.T, namespace string) func() string {
	t.Helper()
	watching, err := w.CoreV1().ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{LabelSelector: application.StateLabel})
	kit.Must(t, err)
	t.Cleanup(watching.Stop)
	var mu sync.Mutex
	var seen strings.Builder
	go func() {
		for event := range watching.ResultChan() {
			cm, ok := event.Object.(*corev1.ConfigMap)
			if !ok {
				continue
			}
			app, err := application.Read(cm)
			if err != nil {
				continue
			}
			mu.Lock()
			seen.WriteString("\n" + cm.Name + " " + string(app.Status.State))
			for _, condition := range app.Status.Conditions {
				if condition.Type == application.ReconciledCondition {
					seen.WriteString(" " + condition.Reason + ": " + condition.Message)
				}
			}
			mu.Unlock()
		}
	}()
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return seen.String()
	}
}
