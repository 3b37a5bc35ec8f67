package telemetry

import (
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// Reporter reports the outcomes of the loop: by an Event of the Application on the hub
// and one of the object on the target, in the log, and in the metrics. It names paths of
// fields, never their values. With many drifts, those that need no action have no
// Event: log, metrics and status have them.
type Reporter struct {
	hub, target events.EventRecorder
	logger      logr.Logger
	metrics     *Metrics
	pace        *pace
	now         func() time.Time
	// after calls a function after a time.
	after func(time.Duration, func())
}

// NewReporter makes a Reporter that records Events on hub and target.
func NewReporter(hub, target events.EventRecorder, logger logr.Logger, metrics *Metrics, now func() time.Time) *Reporter {
	return &Reporter{
		hub: hub, target: target, logger: logger, metrics: metrics, pace: newPace(), now: now,
		after: func(long time.Duration, do func()) { time.AfterFunc(long, do) },
	}
}

// Report reports one outcome.
func (r *Reporter) Report(app *application.Application, outcome status.Outcome) {
	r.logger.Info("acted", "application", app.NamespacedName.String(), "outcome", outcome.String())
	r.metrics.countOutcome(outcome)
	if !isRoutine(outcome) {
		r.write(app, outcome)
		return
	}
	switch long, may := r.pace.reserve(app.NamespacedName, r.now()); {
	case !may:
		const onHubAndTarget = 2
		r.metrics.dropped.Add(onHubAndTarget)
	case long > 0:
		r.after(long, func() { r.write(app, outcome) })
	default:
		r.write(app, outcome)
	}
}

// Failing logs that an Application begins to fail, fails for another reason, or no longer fails.
// Its user, or an administrator of the cluster, can act on that: for the administrator of the agent
// it is no error.
func (r *Reporter) Failing(app *application.Application, reconciled metav1.Condition) {
	if reconciled.Status == metav1.ConditionTrue {
		r.logger.Info("no longer fails", "application", app.NamespacedName.String())
		return
	}
	r.logger.Info("fails", "application", app.NamespacedName.String(), "reason", reconciled.Reason, "message", reconciled.Message)
}

// write writes the Events of an outcome. It reads only the identity of the Application.
func (r *Reporter) write(app *application.Application, outcome status.Outcome) {
	configMap := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: app.Namespace, Name: app.Name, UID: app.UID,
	}
	object := &corev1.ObjectReference{
		APIVersion: outcome.Object.APIVersion, Kind: outcome.Object.Kind,
		Namespace: outcome.Object.Namespace, Name: outcome.Object.Name, UID: outcome.UID,
		// Events that differ in their note only are counted as one: without the
		// fields, the drift of another field would have no Event.
		FieldPath: cut(outcome.Fields()),
	}
	kind, reason, note := eventType(outcome.Action), string(outcome.Action), cut(outcome.String())
	r.hub.Eventf(configMap, object, kind, reason, "Reconcile", "%s", note)
	r.target.Eventf(object, configMap, kind, reason, "Reconcile", "%s", note)
}

// isRoutine reports whether an outcome needs no action of a user. Any client that reaches the guard may have
// reported that the glass is broken.
func isRoutine(outcome status.Outcome) bool {
	drift, _ := results(outcome)
	return outcome.Action == status.GlassBroken || slices.Contains([]string{"reverted", "recreated", "observed", "held"}, drift)
}

// cut limits a text to the length that fits into the note of an Event.
func cut(text string) string { return application.Cut(text, application.NoteBytes) }

// eventType returns Warning for an outcome that is worth a look: an observed field was
// changed, or is not changed back.
func eventType(action status.Action) string {
	switch action {
	case status.Reverted, status.Recreated, status.Detected, status.ContentionBegan, status.Conflicted, status.RepairFailed,
		status.NotShutDown, status.HeldBack, status.GlassBroken:
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// duplicateAgent is the reason of the Event of an agent that must not act.
const duplicateAgent = "DuplicateAgent"

// ReportRefusal reports why an agent must not act, by an Event of the Lease on the hub that
// it cannot take, because administrators look there.
func ReportRefusal(hub events.EventRecorder, cluster, why string) {
	lease := &corev1.ObjectReference{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease",
		Namespace: application.AgentsNamespace, Name: application.HubLease(cluster),
	}
	hub.Eventf(lease, nil, corev1.EventTypeWarning, duplicateAgent, "Acquire", "%s", cut(why))
}

// EventMeaning is an Event that agents write, and its meaning.
type EventMeaning struct {
	Type, Reason string
	// On is its subject, in words.
	On      string
	Meaning string
}

// EventMeanings are all Events that agents write.
func EventMeanings() []EventMeaning {
	var all []EventMeaning
	for _, one := range status.Actions() {
		all = append(all, EventMeaning{eventType(one.Action), string(one.Action), "Application, and the object on its cluster", one.Meaning})
	}
	return append(all, EventMeaning{
		corev1.EventTypeWarning, duplicateAgent, "Lease of the cluster on the hub", "another target, or another agent, has the name of this agent's cluster",
	})
}
