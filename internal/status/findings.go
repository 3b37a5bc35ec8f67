package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/health"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Findings are the findings of a pass. They decide conditions and state.
type Findings struct {
	Verdicts []Verdict
	// Unrecorded are objects that name the Application as their owner, and that its agent did not
	// create.
	Unrecorded []manifest.ID
	// objects is the number of objects of the Application, 0 if only verdicts are known.
	objects int
	// rewritten and contended name fields, unwell and missing objects.
	rewritten, contended, unwell, missing []Verdict
	healths                               []health.Health
}

// AddObject adds the findings about one object, beside its verdict. The status of its health is
// empty if the object does not exist. rewritten are the fields that the API server stores in
// another form. contention is the [ContentionText] of the object.
func (f *Findings) AddObject(id manifest.ID, found health.Health, rewritten []schema.Path, contention string) {
	f.objects++
	if contention != "" {
		f.contended = append(f.contended, Verdict{Object: id, Message: contention})
	}
	if len(rewritten) > 0 {
		f.rewritten = append(f.rewritten, Verdict{Object: id, Fields: rewritten})
	}
	switch found.Status {
	case "":
		f.missing = append(f.missing, Verdict{Object: id})
		return
	case health.StatusCurrent:
	default:
		f.unwell = append(f.unwell, Verdict{Object: id, Message: string(found.Status) + ": " + found.Message})
	}
	f.healths = append(f.healths, found)
}

// Contended is the number of objects with contention.
func (f Findings) Contended() int { return len(f.contended) }

// ContainerHealth counts the Pods of all workloads. It returns nil if there is no workload.
func (f Findings) ContainerHealth() *application.ContainerHealth {
	_, pods, hasWorkloads := health.RollUp(f.healths)
	if !hasWorkloads {
		return nil
	}
	return &application.ContainerHealth{
		DesiredPods: pods.Desired, RunningPods: pods.Running, CompletedPods: pods.Completed, FailedPods: pods.Failed,
	}
}

// WholeObject is the field of contention about an object that a competing writer deletes repeatedly.
const WholeObject = "(the object itself)"

// ContentionText describes the contention about an object. It returns "" if there are none.
func ContentionText(ongoing []pacing.Contention) string {
	texts := make([]string, 0, len(ongoing))
	for _, one := range ongoing {
		switch {
		case one.Field == WholeObject:
			texts = append(texts, "another client deletes the object again and again: leave it out of the manifest to stop creating it")
		case strings.Contains(one.Field, application.Prefix):
			texts = append(texts, one.Field+", which identifies the object, is changed again and again by "+one.Writer+": stop it from changing this field")
		default:
			texts = append(texts, one.Field+" is changed again and again by "+one.Writer+": leave "+one.Field+" out of the observer schema to allow that")
		}
	}
	return strings.Join(texts, "; ")
}

func (f Findings) reconciled() metav1.Condition {
	reason, found := gravest(f.Verdicts)
	status := metav1.ConditionFalse
	switch {
	case reason == "" && len(f.rewritten) > 0:
		return metav1.Condition{
			Status: metav1.ConditionTrue, Reason: normalizedByServer,
			Message: apierror.Cut("the API server, or a webhook there, stores values in another form: " + f.texts(f.rewritten)),
		}
	case reason == "":
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: reconciled, Message: "all objects match the Application"}
	case reason == ObserveMode:
		reason = driftedReason
	case reason == Unreachable:
		status = metav1.ConditionUnknown
	}
	return metav1.Condition{Status: status, Reason: reason, Message: f.texts(found)}
}

func (f Findings) ready() metav1.Condition {
	reconciled := f.reconciled()
	switch {
	case reconciled.Status != metav1.ConditionTrue:
		return reconciled
	case len(f.unwell) > 0:
		reason := inProgress
		if f.state() == application.StateFailed {
			reason = unhealthy
		}
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: f.texts(f.unwell)}
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: ready, Message: "all objects match the Application, and are healthy"}
}

func (f Findings) state() application.State {
	state, _, _ := health.RollUp(f.healths)
	switch reason, _ := gravest(f.Verdicts); {
	case IsFailure(reason):
		return application.StateFailed
	case (reason == NotEstablished || reason == Waiting) && state != health.StateFailed:
		return application.StateCreating
	}
	switch {
	case len(f.missing) > 0 && state != health.StateFailed:
		return application.StateDegraded
	case len(f.healths) == 0:
		return application.StateRunning
	}
	return application.State(state)
}

// condition returns a condition that is true if any verdict is about it, with the gravest reason. Its
// message only names objects and fields: the conditions Reconciled and Ready have the details.
func (f Findings) condition(name, otherwise string) metav1.Condition {
	reason, found := gravest(about(name, f.Verdicts))
	for i := range found { // copies
		if found[i].Object != (manifest.ID{}) {
			found[i].Message = ""
		}
	}
	return f.isTrue(reason, found, otherwise)
}

// conflicting returns the condition about other owners. Marks that another client has written are less
// grave than a conflict about a wanted object. The message names one such object, because any client
// may mark many.
func (f Findings) conflicting() metav1.Condition {
	found := f.condition(conflict, noConflicts)
	if found.Status == metav1.ConditionTrue || len(f.Unrecorded) == 0 {
		return found
	}
	text := f.Unrecorded[0].String()
	if more := len(f.Unrecorded) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: unrecorded, Message: apierror.Cut(text +
		": it has the marks of this Application, but the inventory does not have it: the agent leaves it alone: remove the annotations " +
		application.OwnerAnnotation + " and " + application.OwnerUIDAnnotation + ", or delete the object")}
}

// isTrue returns a condition that is true if there are verdicts.
func (f Findings) isTrue(reason string, found []Verdict, otherwise string) metav1.Condition {
	if len(found) == 0 {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: otherwise}
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: f.texts(found)}
}

// manyObjects is the number of objects from which on a message has only the first one. After a pass,
// the status has the details of each object; without one, as in a deletion, the message has them.
const manyObjects = 4

// texts returns the message of a condition about these verdicts.
func (f Findings) texts(of []Verdict) string {
	if len(of) < manyObjects || f.objects == 0 {
		return apierror.Cut(join(of, "; "))
	}
	count := fmt.Sprintf("%d objects", len(of))
	if len(of) <= f.objects { // others have left the spec, or are Secrets of hooks
		count = fmt.Sprintf("%d of %d objects", len(of), f.objects)
	}
	return apierror.Cut(fmt.Sprintf("%s: %s; and %d more", count, of[0], len(of)-1))
}
