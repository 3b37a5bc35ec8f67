package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// Each function below sets the status for one situation of an Application. The status is a working
// copy. The caller may change its conditions.

// Conclude sets conditions and state after a pass that carried out the spec with this digest, or
// tried to.
func Conclude(app *application.Application, spec string, f Findings, now time.Time) {
	status := &app.Status
	status.ObservedSpec = spec
	set(status, application.ReconciledCondition, f.reconciled(), now)
	set(status, drifted, f.condition(drifted, noDrift), now)
	set(status, application.ContendedCondition, f.isTrue(competingWriter, f.contended, noCompetingWriter), now)
	set(status, conflict, f.conflicting(), now)
	set(status, stalled, f.condition(stalled, progressing), now)
	set(status, application.ReadyCondition, f.ready(), now)
	status.State = f.state()
}

// Suspend reports that the agent does not look at the objects. The observed spec stays unchanged.
func Suspend(status *application.Status, now time.Time) {
	for _, name := range []string{
		application.ReconciledCondition, drifted, application.ContendedCondition, conflict, stalled, application.ReadyCondition,
	} {
		set(status, name, metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: suspended, Message: "the Application is suspended: the agent ignores its objects until you resume it (kubectl krake resume)",
		}, now)
	}
	if status.State == "" {
		status.State = application.StateCreating
	}
}

// LoseTarget reports that the target does not answer. The status of single objects and the observed
// spec stay unchanged.
func LoseTarget(status *application.Status, cluster string, deleted bool, now time.Time) {
	for _, name := range []string{application.ReconciledCondition, drifted, application.ReadyCondition} {
		set(status, name, metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: Unreachable,
			Message: "the API server of cluster " + cluster + " does not answer: the status of its objects is the last known one",
		}, now)
	}
	switch {
	case deleted:
		status.State = application.StateDeleting
	case status.State == "":
		status.State = application.StateCreating
	}
}

// AwaitSource reports that the source behind a URL is not fetched yet, and that the agent tries
// again.
func AwaitSource(status *application.Status, now time.Time) {
	status.State = application.StateTranslating
	set(status, stalled, metav1.Condition{Status: metav1.ConditionFalse, Reason: progressing}, now)
}

// Delete reports the progress of the deletion. The verdicts are those of the remaining objects.
func Delete(status *application.Status, remaining []Verdict, now time.Time) {
	blocked := filter(remaining, func(v Verdict) bool { return v.Reason == DeletionBlocked })
	f := Findings{Verdicts: remaining}
	set(status, stalled, f.isTrue(DeletionBlocked, blocked, progressing), now)
	unready := metav1.Condition{Status: metav1.ConditionFalse, Reason: deleting, Message: "the Application is being deleted"}
	if reason, _ := gravest(remaining); reason != "" {
		unready = f.reconciled()
	}
	set(status, application.ReconciledCondition, unready, now)
	set(status, application.ReadyCondition, unready, now)
	status.State = application.StateDeleting
}

// ShutDown reports the progress of a shutdown before the Application is deleted or moved.
func ShutDown(status *application.Status, record application.ShutdownRecord, now time.Time) {
	unready := metav1.Condition{Status: metav1.ConditionFalse, Reason: shuttingDown, Message: fmt.Sprintf(
		"the Application is asked to shut down (attempt %d), and has until %s to confirm that", record.Attempt, record.Deadline.UTC().Format(time.RFC3339))}
	stall := metav1.Condition{Status: metav1.ConditionFalse, Reason: progressing}
	switch {
	case record.State == application.StateReady:
		unready.Reason, unready.Message = shutDown, "the Application has shut down"
	case record.State == application.StateDegraded:
		unready.Reason, unready.Message = notShutDown, notShutDownText(record.Message)
		stall = metav1.Condition{Status: metav1.ConditionTrue, Reason: unready.Reason, Message: unready.Message}
	case record.State == application.StateDeleting:
		unready.Reason, unready.Message = notShutDown, record.Message
	case record.Message != "":
		unready.Message = apierror.Cut(unready.Message + "; a call has failed: " + record.Message)
	}
	set(status, stalled, stall, now)
	set(status, application.ReadyCondition, unready, now)
	status.State = record.State
}

// NotReady sets only the condition Ready, from one verdict.
func NotReady(status *application.Status, why Verdict, now time.Time) {
	set(status, application.ReadyCondition, Findings{Verdicts: []Verdict{why}}.reconciled(), now)
}

// AwaitFormer reports that the agent creates nothing on this cluster before the Application has
// shut down on its former cluster. The other agent owns the remaining status.
func AwaitFormer(app *application.Application, cluster string, now time.Time) {
	status := &app.Status
	status.Awaiting = cluster
	moving, state := awaiting(app)
	set(status, application.MigratingCondition, moving, now)
	set(status, application.ReadyCondition, metav1.Condition{Status: metav1.ConditionFalse, Reason: moving.Reason, Message: moving.Message}, now)
	stall := metav1.Condition{Status: metav1.ConditionFalse, Reason: progressing}
	if state == application.StateDegraded {
		stall = metav1.Condition{Status: metav1.ConditionTrue, Reason: moving.Reason, Message: moving.Message}
	}
	set(status, stalled, stall, now)
	status.State = state
}

// Move sets the condition of a move while another cluster has objects. It reports whether objects
// are still missing or unhealthy here. target identifies their cluster and namespace. It is empty
// if that is not known.
func Move(app *application.Application, target types.UID, now time.Time) (incomplete bool) {
	status := &app.Status
	status.Awaiting = ""
	if len(app.OtherHolders) == 0 {
		meta.RemoveStatusCondition(&status.Conditions, application.MigratingCondition)
		status.Target = ""
		return false
	}
	others := strings.Join(app.OtherHolders, ", ")
	moving := metav1.Condition{Status: metav1.ConditionTrue, Reason: creating, Message: "the objects are being created; those of the former cluster stay until then: " + others}
	isReady := meta.IsStatusConditionTrue(status.Conditions, application.ReadyCondition)
	waiting, state := awaiting(app)
	switch {
	case app.Spec.Hooks.Shutdown && state == application.StateDegraded:
		moving = waiting
	case isReady:
		moving.Reason, moving.Message = cleaningUpFormer, "all objects are here; those of the former cluster are being deleted by its agent: "+others
	case meta.IsStatusConditionTrue(status.Conditions, application.ReconciledCondition):
		moving.Reason, moving.Message = waitingForHealth, "all objects are here, and not all are healthy; those of the former cluster stay until then: "+others
	}
	status.Target = target
	set(status, application.MigratingCondition, moving, now)
	return !isReady
}

// awaiting returns the condition and state for the shutdowns on other clusters. One failed shutdown
// decides for all.
func awaiting(app *application.Application) (metav1.Condition, application.State) {
	moving := metav1.Condition{Status: metav1.ConditionTrue, Reason: waitingForShutdown}
	state := application.StateMigrating
	var texts []string
	for _, cluster := range slices.Sorted(maps.Keys(app.Elsewhere)) {
		record := app.Elsewhere[cluster]
		text := "cluster " + cluster + ": the Application has to shut down there first"
		switch {
		case record.State == application.StateDegraded:
			state, moving.Reason = record.State, notShutDown
			text = "cluster " + cluster + ": " + notShutDownText(record.Message)
		case state != application.StateDegraded && (record.State == application.StateWaiting || record.State == application.StateReady):
			state = record.State
		}
		texts = append(texts, text)
	}
	moving.Message = apierror.Cut(strings.Join(texts, "; "))
	return moving, state
}

func notShutDownText(why string) string {
	return apierror.Cut("the Application did not shut down, and is kept: ask again with a new value of " + application.ShutdownRetryAnnotation +
		", or remove shutdown from " + application.HooksAnnotation + ": " + why)
}

func set(status *application.Status, name string, condition metav1.Condition, now time.Time) {
	condition.Type, condition.LastTransitionTime = name, metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, condition)
}
