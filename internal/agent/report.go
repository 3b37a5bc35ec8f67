package agent

import (
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// reporter tells people what was done: by an Event of the Application on the hub
// and one of the object on the target, in the log, and in the metrics. It tells
// paths of fields, never their values. Where drifts are many, log, metrics and status
// alone tell of those that were dealt with.
type reporter struct {
	hub, target events.EventRecorder
	logger      logr.Logger
	metrics     *metrics
	pace        *pace
	now         func() time.Time
	// after does something after a time.
	after func(time.Duration, func())
}

func newReporter(hub, target events.EventRecorder, logger logr.Logger, metrics *metrics, now func() time.Time) *reporter {
	return &reporter{
		hub: hub, target: target, logger: logger, metrics: metrics, pace: newPace(), now: now,
		after: func(long time.Duration, do func()) { time.AfterFunc(long, do) },
	}
}

func (r *reporter) report(app *application.Application, outcome reconcile.Outcome) {
	r.logger.Info("acted", "application", app.NamespacedName.String(), "outcome", outcome.String())
	r.metrics.acted(outcome)
	if !isRoutine(outcome) {
		r.write(app, outcome)
		return
	}
	switch long, may := r.pace.wait(app.NamespacedName, r.now()); {
	case !may:
		const onHubAndTarget = 2
		r.metrics.unwritten.Add(onHubAndTarget)
	case long > 0:
		r.after(long, func() { r.write(app, outcome) })
	default:
		r.write(app, outcome)
	}
}

// write writes the Events of an outcome. Of the Application it reads the identity alone.
func (r *reporter) write(app *application.Application, outcome reconcile.Outcome) {
	configMap := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: app.Namespace, Name: app.Name, UID: app.UID,
	}
	object := &corev1.ObjectReference{
		APIVersion: outcome.Object.APIVersion, Kind: outcome.Object.Kind,
		Namespace: outcome.Object.Namespace, Name: outcome.Object.Name, UID: outcome.UID,
		// Events that differ in their note only are counted as one: without the
		// fields, the drift of another field would never be told.
		FieldPath: cut(outcome.Fields()),
	}
	kind, reason, note := eventType(outcome.Action), string(outcome.Action), cut(outcome.String())
	r.hub.Eventf(configMap, object, kind, reason, "Reconcile", "%s", note)
	r.target.Eventf(object, configMap, kind, reason, "Reconcile", "%s", note)
}

// isRoutine tells if nobody has to do anything about an outcome.
func isRoutine(outcome reconcile.Outcome) bool {
	switch drift, _ := results(outcome); drift {
	case "reverted", "recreated", "observed", "held":
		return true
	}
	return false
}

// cut keeps a text within what the API server takes for the note of an Event.
func cut(text string) string {
	const most = 1000
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

// eventType: that somebody changed what must not change, or that it is not
// changed back, is worth a look.
func eventType(action reconcile.Action) string {
	switch action {
	case reconcile.Reverted, reconcile.Recreated, reconcile.Detected, reconcile.Contended, reconcile.Conflict, reconcile.Failed,
		reconcile.NotShutDown:
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// EventMeaning is an Event that agents write, and what it tells.
type EventMeaning struct {
	Type, Reason string
	// On is what it is about, in words.
	On      string
	Meaning string
}

// Events are all that agents write.
func Events() []EventMeaning {
	var all []EventMeaning
	for _, one := range reconcile.Actions() {
		all = append(all, EventMeaning{eventType(one.Action), string(one.Action), "Application, and the object on its cluster", one.Meaning})
	}
	return append(all, EventMeaning{
		corev1.EventTypeWarning, duplicateAgent, "Lease of the cluster on the hub", "another target, or another agent, has the name of this agent's cluster",
	})
}
