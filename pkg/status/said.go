package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Reasons of conditions that no verdict has.
const (
	reconciled         = "Reconciled"
	writtenOtherwise   = "WrittenOtherwise"
	driftedReason      = "Drifted"
	suspended          = "Suspended"
	deleting           = "Deleting"
	progressing        = "Progressing"
	ready              = "Ready"
	unhealthy          = "Unhealthy"
	inProgress         = "InProgress"
	shuttingDown       = "ShuttingDown"
	shutDown           = "ShutDown"
	notShutDown        = "ShutdownNotConfirmed"
	noDrift            = "NoDrift"
	rivalManager       = "RivalManager"
	noRival            = "NoRival"
	noConflict         = "NoConflict"
	waitingForShutdown = "WaitingForShutdown"
	creating           = "Creating"
	waitingForHealth   = "WaitingForHealth"
	leavingFormer      = "LeavingFormerCluster"
)

// Said is what a condition can say: a status, a reason for it, and what that means.
type Said struct {
	Condition string
	Status    metav1.ConditionStatus
	Reason    string
	Meaning   string
}

// IsTrouble reports whether a person has to look into it, or waits for it.
func (s Said) IsTrouble() bool {
	switch s.Condition {
	case application.ReadyCondition, application.ReconciledCondition:
		return s.Status != metav1.ConditionTrue || s.Reason == writtenOtherwise
	}
	return s.Status != metav1.ConditionFalse
}

// Conditions returns all that agents say of Applications, by condition, the gravest first.
func Conditions() []Said {
	const (
		yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown

		isReady, isReconciled, contended = application.ReadyCondition, application.ReconciledCondition, application.ContendedCondition
		migrating                        = application.MigratingCondition
	)
	return slices.Concat(
		unreconciled(isReady), []Said{
			{isReady, no, unhealthy, "an object is as the Application says, and has failed"},
			{isReady, no, inProgress, "an object is as the Application says, and not healthy yet"},
			{isReady, no, waitingForShutdown, "it is moved here, and has to shut down where it was first"},
			{isReady, no, shuttingDown, "it was asked to shut down before it goes"},
			{isReady, no, shutDown, "it has shut down, and its objects are about to go"},
			{isReady, no, notShutDown, "it has not confirmed its shutdown in time"},
			{isReady, yes, ready, "all objects are as the Application says, and healthy"},
		},
		unreconciled(isReconciled), []Said{
			{isReconciled, yes, writtenOtherwise, "all is well; the API server, or a webhook there, writes some observed values otherwise than the Application does"},
			{isReconciled, yes, reconciled, "all objects are as the Application says"},
		},
		reasonsOf(drifted), []Said{
			{drifted, unknown, Unreachable, "the API server of the cluster does not answer"},
			saidSuspended(drifted),
			{drifted, no, noDrift, "nothing differs that is not reverted at once"},
		},
		[]Said{
			{contended, yes, rivalManager, "somebody changes an observed field, or deletes an object, again and again"},
			saidSuspended(contended),
			{contended, no, noRival, "nobody does"},
		},
		reasonsOf(conflict), []Said{
			saidSuspended(conflict),
			{conflict, no, noConflict, "no object belongs to somebody else"},
		},
		reasonsOf(stalled), []Said{
			{stalled, yes, notShutDown, "it has not confirmed its shutdown, and the agent has given up"},
			saidSuspended(stalled),
			{stalled, no, progressing, "nothing waits for somebody to change something"},
		},
		[]Said{
			{migrating, yes, notShutDown, "it has not confirmed its shutdown where it was, and stays there"},
			{migrating, yes, waitingForShutdown, "it has to shut down where it was first"},
			{migrating, yes, creating, "the objects are being created; those of the former cluster stay"},
			{migrating, yes, waitingForHealth, "all objects are here, and not all are healthy; those of the former cluster stay"},
			{migrating, yes, leavingFormer, "all objects are here; those of the former cluster are being deleted by its agent"},
			{application.TooLargeCondition, yes, "NoRoom", "the status does not fit into the ConfigMap, and is not complete"},
		},
	)
}

// unreconciled is what Reconciled and Ready have in common.
func unreconciled(condition string) []Said {
	var said []Said
	for _, reason := range table {
		one := Said{condition, metav1.ConditionFalse, reason.Name, reason.Meaning}
		switch reason.Name {
		case Unreachable:
			one.Status = metav1.ConditionUnknown
		case Observed:
			one.Reason = driftedReason
		}
		said = append(said, one)
	}
	return append(said,
		Said{condition, metav1.ConditionFalse, deleting, "the Application is deleted, and its objects are going"},
		saidSuspended(condition))
}

// reasonsOf returns the reasons that make a condition true.
func reasonsOf(condition string) []Said {
	var said []Said
	for _, reason := range table {
		if slices.Contains(reason.Conditions, condition) {
			said = append(said, Said{condition, metav1.ConditionTrue, reason.Name, reason.Meaning})
		}
	}
	return said
}

func saidSuspended(condition string) Said {
	return Said{condition, metav1.ConditionUnknown, suspended, "mode suspend: nobody looks"}
}
