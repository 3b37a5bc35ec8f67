package agent

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// reporter tells people what was done: as an Event of the Application, which
// kubectl describe shows, and in the log.
type reporter struct {
	recorder events.EventRecorder
	logger   logr.Logger
}

func newReporter(recorder events.EventRecorder, logger logr.Logger) *reporter {
	return &reporter{recorder: recorder, logger: logger}
}

func (r *reporter) report(app *application.Application, outcome reconcile.Outcome) {
	r.logger.Info("acted", "application", app.NamespacedName.String(), "outcome", outcome.String())
	configMap := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: app.Namespace, Name: app.Name, UID: app.UID,
	}
	object := &corev1.ObjectReference{
		APIVersion: outcome.Object.APIVersion, Kind: outcome.Object.Kind,
		Namespace: outcome.Object.Namespace, Name: outcome.Object.Name,
		// Events that differ in their note only are counted as one: without the
		// fields, the drift of another field would never be told.
		FieldPath: cut(outcome.Fields()),
	}
	r.recorder.Eventf(configMap, object, eventType(outcome.Action), string(outcome.Action), "Reconcile", "%s", cut(outcome.String()))
}

// cut keeps a text within what the API server takes for the note of an Event.
func cut(text string) string {
	const most = 1000
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

// eventType: that somebody changed what must not change is worth a look.
func eventType(action reconcile.Action) string {
	switch action {
	case reconcile.Reverted, reconcile.Recreated:
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
