package telemetry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/pkg/status"
	"github.com/krake-observer/krake-observer/test/check"
)

var appName = types.NamespacedName{Namespace: "demo", Name: "app"}

// told is a recorded Event.
type told struct {
	Regarding, Related corev1.ObjectReference
	Text               string
}

// recorder records Events.
type recorder struct{ events []told }

func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, _, _ string, arguments ...any) {
	event := told{Text: strings.Join([]string{eventType, reason, fmt.Sprint(arguments...)}, " ")}
	if one, ok := regarding.(*corev1.ObjectReference); ok {
		event.Regarding = *one
	}
	if other, ok := related.(*corev1.ObjectReference); ok {
		event.Related = *other
	}
	r.events = append(r.events, event)
}

// report returns the Events of an outcome: first those on the hub, then those on the target.
func report(outcome status.Outcome) []told {
	app := &application.Application{NamespacedName: appName, UID: "1"}
	var hub, target recorder
	NewReporter(&hub, &target, log.Log, NewMetrics(), time.Now).Report(app, outcome)
	return append(hub.events, target.events...)
}

// Events report each action. An action that should not have been necessary, or that was not
// possible, is a warning.
func TestReport(t *testing.T) {
	object := manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "web"}
	for action, want := range map[status.Action]string{
		status.Created:     "Normal Created",
		status.Configured:  "Normal Configured",
		status.Deleted:     "Normal Deleted",
		status.Adopted:     "Normal Adopted",
		status.Orphaned:    "Normal Orphaned",
		"HoldStarted":      "Normal HoldStarted",
		"HoldEnded":        "Normal HoldEnded",
		status.Recreated:   "Warning Recreated",
		status.Reverted:    "Warning DriftReverted",
		status.Detected:    "Warning DriftDetected",
		status.FoughtAbout: "Warning Contended",
		status.Conflicted:  "Warning Conflict",
	} {
		outcome := status.Outcome{Action: action, Object: object}
		for _, event := range report(outcome) {
			check.Equal(t, "event", want+" "+outcome.String(), event.Text)
		}
	}
}

// Each action has an Event at the Application, on the hub, and one at the object, on the
// target. Each names the other object.
func TestReportOnBoth(t *testing.T) {
	deployment := status.Outcome{
		Action: status.Reverted,
		Object: manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"},
		Paths:  []schema.Path{{{Field: "spec", Index: -1}, {Field: "replicas", Index: -1}}},
	}
	events := report(deployment)
	app := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "demo", Name: "app", UID: "1"}
	object := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web", FieldPath: "spec.replicas"}
	text := "Warning DriftReverted " + deployment.String()
	check.Equal(t, "events", []told{{app, object, text}, {object, app, text}}, events)
	var many []schema.Path
	for range 1000 {
		many = append(many, deployment.Paths[0])
	}
	deployment.Paths = many
	for _, event := range report(deployment) {
		if _, note, _ := strings.Cut(event.Text, "DriftReverted "); len(note) > 1024 {
			t.Errorf("a note of %d bytes, of which the API server takes 1024", len(note))
		}
	}
}
