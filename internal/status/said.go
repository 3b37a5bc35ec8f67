package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Reasons of conditions that no verdict has.
const (
	reconciled         = "Reconciled"
	normalizedByServer = "NormalizedByServer"
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
	competingWriter    = "CompetingWriter"
	noCompetingWriter  = "NoCompetingWriter"
	noConflicts        = "NoConflicts"
	unrecorded         = "NotInInventory"
	waitingForShutdown = "WaitingForShutdown"
	creating           = "Creating"
	waitingForHealth   = "WaitingForHealth"
	cleaningUpFormer   = "CleaningUpFormerCluster"
)

// Said is a status of a condition with a reason, and their meaning.
type Said struct {
	Condition string
	Status    metav1.ConditionStatus
	Reason    string
	Meaning   string
}

// IsTrouble reports whether a person has to act, or waits for it.
func (s Said) IsTrouble() bool {
	switch s.Condition {
	case application.ReadyCondition, application.ReconciledCondition:
		return s.Status != metav1.ConditionTrue || s.Reason == normalizedByServer
	}
	return s.Status != metav1.ConditionFalse
}

// Conditions returns all statuses and reasons that agents set, by condition, with the gravest
// first.
func Conditions() []Said {
	const (
		yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown

		isReady, isReconciled, contended = application.ReadyCondition, application.ReconciledCondition, application.ContendedCondition
		migrating                        = application.MigratingCondition
	)
	return slices.Concat(
		unreconciled(isReady), []Said{
			{isReady, no, unhealthy, "an object matches the Application, but has failed"},
			{isReady, no, inProgress, "an object matches the Application, but is not healthy yet"},
			{isReady, no, waitingForShutdown, "it moves here, and has to shut down on its former cluster first"},
			{isReady, no, shuttingDown, "it was asked to shut down before it goes"},
			{isReady, no, shutDown, "it has shut down, and its objects are about to be deleted"},
			{isReady, no, notShutDown, "it has not confirmed its shutdown in time"},
			{isReady, yes, ready, "all objects match the Application, and are healthy"},
		},
		unreconciled(isReconciled), []Said{
			{isReconciled, yes, normalizedByServer, "all objects match; the API server, or a webhook there, stores some observed values in another form"},
			{isReconciled, yes, reconciled, "all objects match the Application"},
		},
		reasonsOf(drifted), []Said{
			{drifted, unknown, Unreachable, "the API server of the cluster does not answer"},
			saidSuspended(drifted),
			{drifted, no, noDrift, "the agent reverts each difference at once"},
		},
		[]Said{
			{contended, yes, competingWriter, "another client changes an observed field, or deletes an object, again and again"},
			saidSuspended(contended),
			{contended, no, noCompetingWriter, "no client does"},
		},
		reasonsOf(conflict), []Said{
			{conflict, yes, unrecorded, "an object has the marks of the Application, but is not in the inventory of its agent, which leaves it alone"},
			saidSuspended(conflict),
			{conflict, no, noConflicts, "no object belongs to another owner"},
		},
		reasonsOf(stalled), []Said{
			{stalled, yes, notShutDown, "it has not confirmed its shutdown, and the agent has given up"},
			saidSuspended(stalled),
			{stalled, no, progressing, "nothing waits for a change by a user or another program"},
		},
		[]Said{
			{migrating, yes, notShutDown, "it has not confirmed its shutdown on its former cluster, and stays there"},
			{migrating, yes, waitingForShutdown, "it has to shut down on its former cluster first"},
			{migrating, yes, creating, "the objects are being created; those of the former cluster stay"},
			{migrating, yes, waitingForHealth, "all objects are here, and not all are healthy; those of the former cluster stay"},
			{migrating, yes, cleaningUpFormer, "all objects are here; those of the former cluster are being deleted by its agent"},
			{application.StatusTruncatedCondition, yes, "SizeLimitExceeded", "the status does not fit into the ConfigMap, and is not complete"},
		},
	)
}

// unreconciled returns the entries that Reconciled and Ready have in common.
func unreconciled(condition string) []Said {
	var said []Said
	for _, reason := range table {
		one := Said{condition, metav1.ConditionFalse, reason.Name, reason.Meaning}
		switch reason.Name {
		case Unreachable:
			one.Status = metav1.ConditionUnknown
		case ObserveMode:
			one.Reason = driftedReason
		}
		said = append(said, one)
	}
	return append(said,
		Said{condition, metav1.ConditionFalse, deleting, "the Application is being deleted, with its objects"},
		saidSuspended(condition))
}

// reasonsOf returns the entries for the reasons that make a condition true.
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
	return Said{condition, metav1.ConditionUnknown, suspended, "mode suspend: the agent ignores the objects"}
}
