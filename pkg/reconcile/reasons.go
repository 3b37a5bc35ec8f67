package reconcile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Said is what a condition can say: a status, and a reason for it.
type Said struct {
	Condition string
	Status    metav1.ConditionStatus
	Reason    string
	Meaning   string
}

// IsTrouble tells what somebody has to look into, or waits for, from what is as it
// should be.
func (s Said) IsTrouble() bool {
	switch s.Condition {
	case application.ReadyCondition, application.ReconciledCondition:
		return s.Status != metav1.ConditionTrue || s.Reason == reasonWrittenOtherwise
	}
	return s.Status != metav1.ConditionFalse
}

// Conditions are all that agents say of Applications, by condition, the gravest first.
func Conditions() []Said {
	var all []Said
	for _, of := range [][]Said{
		readySaid(), reconciledSaid(), driftedSaid(), contendedSaid(), conflictSaid(), stalledSaid(), migratingSaid(), tooLargeSaid(),
	} {
		all = append(all, of...)
	}
	return all
}

// Reasons of conditions that no single object gives.
const (
	reasonWrittenOtherwise = "WrittenOtherwise"
	reasonSuspended        = "Suspended"
	reasonDeleting         = "Deleting"
	reasonProgressing      = "Progressing"
	reasonDrifted          = "Drifted"
)

// meanings are those of the reasons that objects give, the gravest first.
func meanings() []Said {
	return []Said{
		{Reason: reasonUnreadable, Meaning: "a document of the agent in the ConfigMap cannot be read: what is held, or was learned, is not known"},
		{Reason: reasonUnreachable, Meaning: "the API server of the cluster does not answer"},
		{Reason: reasonInvalidTosca, Meaning: "template or archive cannot be translated"},
		{Reason: reasonNotFetched, Meaning: "what is behind the URL could not be fetched; it is tried again"},
		{Reason: reasonRefused, Meaning: "the agent refuses the spec, as the webhook would, or for where it runs"},
		{Reason: reasonNoAccount, Meaning: "the ServiceAccount that is to write the objects is not there"},
		{Reason: reasonOwnedByAnother, Meaning: "the object belongs to another Application"},
		{Reason: reasonAlreadyExists, Meaning: "the object was there before, and belongs to no Application"},
		{Reason: reasonInvalid, Meaning: "the API server refuses values of the object"},
		{Reason: reasonForbidden, Meaning: "the agent, or the ServiceAccount it acts as, lacks a right on the cluster"},
		{Reason: reasonTerminating, Meaning: "the namespace of the objects is being deleted"},
		{Reason: reasonKindNotFound, Meaning: "the cluster does not serve the kind"},
		{Reason: reasonDeletionBlocked, Meaning: "an object that is to go is kept by somebody's finalizer"},
		{Reason: reasonError, Meaning: "something else went wrong, and is tried again"},
		{Reason: reasonIneffective, Meaning: "a repair was accepted and had no lasting effect"},
		{Reason: reasonContended, Meaning: "the object is left alone for a while, because somebody changes it again and again"},
		{Reason: reasonHeld, Meaning: "somebody holds the object or the Application"},
		{Reason: reasonObserved, Meaning: "mode observe: the difference is reported, and left"},
	}
}

// meaningOf gives the meanings of some reasons.
func meaningOf(condition string, status metav1.ConditionStatus, reasons ...string) []Said {
	var said []Said
	for _, one := range meanings() {
		for _, reason := range reasons {
			if one.Reason == reason {
				one.Condition, one.Status = condition, status
				said = append(said, one)
			}
		}
	}
	return said
}

// left are the reasons for which what differs is left.
func left() []string {
	return []string{reasonObserved, reasonHeld, reasonContended, reasonInvalid, reasonIneffective}
}

// unreconciledSaid is what Reconciled and Ready say alike.
func unreconciledSaid(condition string) []Said {
	var said []Said
	for _, one := range meanings() {
		one.Condition, one.Status = condition, metav1.ConditionFalse
		switch one.Reason {
		case reasonUnreachable:
			one.Status = metav1.ConditionUnknown
		case reasonObserved:
			one.Reason = reasonDrifted
		}
		said = append(said, one)
	}
	return append(said,
		Said{condition, metav1.ConditionFalse, reasonDeleting, "the Application is deleted, and its objects are going"},
		suspendedSaid(condition))
}

func suspendedSaid(condition string) Said {
	return Said{condition, metav1.ConditionUnknown, reasonSuspended, "mode suspend: nobody looks"}
}

func reconciledSaid() []Said {
	const condition = application.ReconciledCondition
	return append(unreconciledSaid(condition),
		Said{condition, metav1.ConditionTrue, reasonWrittenOtherwise, "all is well; the API server, or a webhook there, writes some observed values otherwise than the Application does"},
		Said{condition, metav1.ConditionTrue, "Reconciled", "all objects are as the Application says"})
}

func readySaid() []Said {
	const condition = application.ReadyCondition
	return append(unreconciledSaid(condition),
		Said{condition, metav1.ConditionFalse, "Unhealthy", "an object is as the Application says, and has failed"},
		Said{condition, metav1.ConditionFalse, "InProgress", "an object is as the Application says, and not healthy yet"},
		Said{condition, metav1.ConditionFalse, "WaitingForShutdown", "it is moved here, and has to shut down where it was first"},
		Said{condition, metav1.ConditionFalse, "ShuttingDown", "it was asked to shut down before it goes"},
		Said{condition, metav1.ConditionFalse, "ShutDown", "it has shut down, and its objects are about to go"},
		Said{condition, metav1.ConditionFalse, reasonNotShutDown, "it has not confirmed its shutdown in time"},
		Said{condition, metav1.ConditionTrue, "Ready", "all objects are as the Application says, and healthy"})
}

func driftedSaid() []Said {
	const condition = application.DriftedCondition
	return append(meaningOf(condition, metav1.ConditionTrue, left()...),
		Said{condition, metav1.ConditionUnknown, reasonUnreachable, "the API server of the cluster does not answer"},
		suspendedSaid(condition),
		Said{condition, metav1.ConditionFalse, "NoDrift", "nothing differs that is not reverted at once"})
}

func contendedSaid() []Said {
	const condition = application.ContendedCondition
	return []Said{
		{condition, metav1.ConditionTrue, "RivalManager", "somebody changes an observed field, or deletes an object, again and again"},
		suspendedSaid(condition),
		{condition, metav1.ConditionFalse, "NoRival", "nobody does"},
	}
}

func conflictSaid() []Said {
	const condition = application.ConflictCondition
	return append(meaningOf(condition, metav1.ConditionTrue, reasonOwnedByAnother, reasonAlreadyExists),
		suspendedSaid(condition),
		Said{condition, metav1.ConditionFalse, "NoConflict", "no object belongs to somebody else"})
}

func stalledSaid() []Said {
	const condition = application.StalledCondition
	return append(meaningOf(condition, metav1.ConditionTrue,
		reasonUnreadable, reasonInvalidTosca, reasonRefused, reasonInvalid, reasonTerminating, reasonKindNotFound, reasonDeletionBlocked),
		Said{condition, metav1.ConditionTrue, reasonNotShutDown, "it has not confirmed its shutdown, and the agent has given up"},
		suspendedSaid(condition),
		Said{condition, metav1.ConditionFalse, reasonProgressing, "nothing waits for somebody to change something"})
}

func migratingSaid() []Said {
	const condition = application.MigratingCondition
	return []Said{
		{condition, metav1.ConditionTrue, reasonNotShutDown, "it has not confirmed its shutdown where it was, and stays there"},
		{condition, metav1.ConditionTrue, "WaitingForShutdown", "it has to shut down where it was first"},
		{condition, metav1.ConditionTrue, "Creating", "the objects are being created; those of the former cluster stay"},
		{condition, metav1.ConditionTrue, "WaitingForHealth", "all objects are here, and not all are healthy; those of the former cluster stay"},
		{condition, metav1.ConditionTrue, "LeavingFormerCluster", "all objects are here; those of the former cluster are being deleted by its agent"},
	}
}

func tooLargeSaid() []Said {
	return []Said{{application.TooLargeCondition, metav1.ConditionTrue, "NoRoom", "the status does not fit into the ConfigMap, and is not complete"}}
}

// ActionMeaning is an action, which is the reason of its Event, and what it tells.
type ActionMeaning struct {
	Action  Action
	Meaning string
}

// Actions are all of them.
func Actions() []ActionMeaning {
	return []ActionMeaning{
		{Created, "an object was created"},
		{Configured, "an object was changed, because the spec has"},
		{Reverted, "a change of observed fields was taken back"},
		{Recreated, "an object that somebody had deleted was created again"},
		{Detected, "observed fields differ, and are left as they are: the note says why"},
		{Failed, "a change could not be taken back: the note says why"},
		{Contended, "somebody changes observed fields again and again"},
		{Conflict, "an object belongs to somebody else"},
		{Adopted, "an object that was there was taken over"},
		{Orphaned, "an object was let go of, and stays"},
		{Deleted, "an object was deleted"},
		{Abandoned, "an object was given up, and perhaps stays"},
		{AskedToShutDown, "the Application was asked to shut down"},
		{ShutDown, "it has shut down"},
		{NotShutDown, "it has not confirmed that in time"},
		{Completed, "it has said that its work is done, and was deleted"},
	}
}
