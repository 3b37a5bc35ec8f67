package gitops

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// mapping is the health of a state for Argo CD and for Flux.
type mapping struct {
	argo health.HealthStatusCode
	flux kstatus.Status
}

var (
	healthy     = mapping{health.HealthStatusHealthy, kstatus.CurrentStatus}
	progressing = mapping{health.HealthStatusProgressing, kstatus.InProgressStatus}
	degraded    = mapping{health.HealthStatusDegraded, kstatus.FailedStatus}
	// suspended: Flux has no word for it, and waits for nothing.
	suspended = mapping{health.HealthStatusSuspended, kstatus.CurrentStatus}
)

var stateHealth = map[application.State]mapping{
	application.StateRunning: healthy, application.StateCompleted: healthy,
	application.StateCreating: progressing, application.StateTranslating: progressing,
	application.StateRestarting: progressing, application.StateDegraded: progressing,
	application.StateMigrating: progressing, application.StateWaiting: progressing,
	application.StateReady: progressing, application.StateDeleting: progressing,
	application.StateFailed: degraded,
}

// Both checks have a health for every state that an agent writes: a new state needs a
// row here, in manifests/gitops and in docs/gitops.md.
func TestEveryStateHasAHealth(t *testing.T) {
	for _, state := range application.States() {
		want, ok := stateHealth[state]
		if !ok {
			t.Errorf("add the state %s to this test and to the checks", state)
		}
		checkHealth(t, string(state), stored(t, application.Status{State: state, Conditions: ready(state)}), want, "")
	}
	unknown := stored(t, application.Status{State: "DANCING"})
	checkHealth(t, "an unknown state", unknown, mapping{health.HealthStatusUnknown, kstatus.InProgressStatus}, "older than the state DANCING")
}

// ready is the condition Ready of a state without problems.
func ready(state application.State) []metav1.Condition {
	is := metav1.Condition{Type: application.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready"}
	if stateHealth[state] != healthy {
		is.Status, is.Reason = metav1.ConditionFalse, "InProgress"
	}
	return []metav1.Condition{is}
}

// An Application has failed for both if a reason of the conditions says so, unless a
// user wants it. A new reason that users want needs a row here.
func TestEveryReasonHasAHealth(t *testing.T) {
	wanted := map[string]mapping{status.Held: suspended, status.ObserveMode: suspended, status.NotEstablished: progressing, status.Waiting: progressing}
	for _, reason := range status.Reasons() {
		want := degraded
		switch got, ok := wanted[reason.Name]; {
		case reason.Name == status.Unreachable, reason.Name == status.Contended:
			continue // TestSituations has the one, and TestHealth the other
		case reason.Wanted && !ok:
			t.Errorf("add the reason %s to this test and to the checks", reason.Name)
		case reason.Wanted:
			want = got
		}
		findings := status.Findings{Verdicts: []status.Verdict{{Reason: reason.Name, Message: `a "quoted\" text`}}}
		app := &application.Application{}
		status.Conclude(app, "digest", findings, time.Unix(0, 0))
		checkHealth(t, reason.Name, stored(t, app.Status), want, `a "quoted\" text`)
	}
}

// The situations that are no reason of an object.
func TestSituations(t *testing.T) {
	running := func(change func(s *application.Status)) *unstructured.Unstructured {
		app := &application.Application{}
		status.Conclude(app, "digest", status.Findings{}, time.Unix(0, 0))
		change(&app.Status)
		return stored(t, app.Status)
	}
	now := time.Unix(1, 0)
	checkHealth(t, "running", running(func(*application.Status) {}), healthy, "healthy")
	checkHealth(t, "suspended", running(func(s *application.Status) { status.Suspend(s, now) }), suspended, "kubectl krake resume")
	checkHealth(t, "suspended from the start", func() *unstructured.Unstructured {
		var s application.Status
		status.Suspend(&s, now)
		return stored(t, s)
	}(), mapping{health.HealthStatusSuspended, kstatus.InProgressStatus}, "Suspended")
	checkHealth(t, "no answer of the cluster", running(func(s *application.Status) { status.LoseTarget(s, "east", false, now) }),
		mapping{health.HealthStatusUnknown, kstatus.InProgressStatus}, "east does not answer")
	shutdown := application.ShutdownRecord{State: application.StateDegraded, Message: "no answer"}
	checkHealth(t, "not shut down", running(func(s *application.Status) { status.ShutDown(s, shutdown, now) }), degraded, "did not shut down")
	shutdown.State = application.StateWaiting
	checkHealth(t, "shutting down", running(func(s *application.Status) { status.ShutDown(s, shutdown, now) }), progressing, "asked to shut down")
}

// For a long status, which is compressed, the state decides.
func TestACompressedStatusLeavesTheState(t *testing.T) {
	for state, want := range stateHealth {
		long := application.Status{State: state, Conditions: ready(state)}
		for i := range 5000 {
			long.Objects = append(long.Objects, application.ObjectStatus{Message: fmt.Sprintf("object %d is not as it should be", i)})
		}
		object := stored(t, long)
		if _, ok, err := unstructured.NestedString(object.Object, "binaryData", "status"); !ok || err != nil {
			t.Fatalf("the status is not compressed: %v", err)
		}
		checkHealth(t, string(state), object, want, string(state))
	}
}

// Where Argo CD opens no libraries, the state decides.
func TestWithoutLuaLibraries(t *testing.T) {
	check := luaInFile(t)
	check.openLibs = false
	for state, want := range stateHealth {
		got, err := check.GetResourceHealth(stored(t, application.Status{State: state, Conditions: ready(state)}))
		kit.Must(t, err)
		if got.Status != want.argo || got.Message != string(state) {
			t.Errorf("%s: got %v, want %s", state, got, want.argo)
		}
	}
}

// Argo CD and Flux use the checks for all ConfigMaps: the others are healthy.
func TestPlainConfigMapsAreHealthy(t *testing.T) {
	for name, cm := range map[string]*corev1.ConfigMap{
		"empty":  {},
		"data":   {Data: map[string]string{"status": `{"conditions":[{"type":"Ready","status":"False"}]}`}},
		"binary": {BinaryData: map[string][]byte{"status": {1}}},
		"labels": {ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"krake.dev/state": "FAILED"}, Annotations: map[string]string{"other": "x"},
		}},
	} {
		checkHealth(t, name, objectOf(t, cm), healthy, "")
	}
	checkHealth(t, "before its agent", objectOf(t, kit.Application("demo", "web", song)), progressing, "no agent has reported")
}

// stored is an Application with a status, as its agent stores it.
func stored(t *testing.T, s application.Status) *unstructured.Unstructured {
	t.Helper()
	cm := kit.Application("demo", "web", song)
	app, err := application.Read(cm)
	kit.Must(t, err)
	app.Status = s
	kit.Must(t, app.Record(cm))
	return objectOf(t, cm)
}

func objectOf(t *testing.T, cm *corev1.ConfigMap) *unstructured.Unstructured {
	t.Helper()
	cm = cm.DeepCopy()
	cm.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cm)
	kit.Must(t, err)
	return &unstructured.Unstructured{Object: object}
}

// checkHealth fails unless both see an object like that.
func checkHealth(t *testing.T, name string, object *unstructured.Unstructured, want mapping, says string) {
	t.Helper()
	if complaint := healthIs(t, luaInFile(t), celInFile(t), object, want, says); complaint != "" {
		t.Errorf("%s: %s", name, complaint)
	}
}

// healthIs returns a complaint unless both see an object like that, and the message of
// Argo CD has a text.
func healthIs(t testing.TB, argo luaCheck, flux celCheck, object *unstructured.Unstructured, want mapping, says string) string {
	t.Helper()
	got, err := health.GetResourceHealth(object, argo)
	kit.Must(t, err)
	var complaints []string
	if got.Status != want.argo || !strings.Contains(got.Message, says) {
		complaints = append(complaints, fmt.Sprintf("Argo CD: got %s (%s), want %s (%s)", got.Status, got.Message, want.argo, says))
	}
	if is := flux.health(t, object); is != want.flux {
		complaints = append(complaints, fmt.Sprintf("Flux: got %s, want %s", is, want.flux))
	}
	if len(complaints) > 0 {
		status, _, _ := unstructured.NestedString(object.Object, "data", "status")
		complaints = slices.Concat(complaints, []string{status})
	}
	return strings.Join(complaints, "\n")
}
