package status

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/apierror"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/health"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/pacing"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Findings are what a pass found, of which conditions and state are made.
type Findings struct {
	Verdicts []Verdict
	// rewritten and contended name fields, unwell and missing objects.
	rewritten, contended, unwell, missing []Verdict
	healths                               []health.Health
}

// AddObject adds what was found of one object beside its verdict: its health, without a status if it does
// not exist, the fields that the API server writes in another form, and the [FightsText] of the object.
func (f *Findings) AddObject(id manifest.ID, found health.Health, rewritten []schema.Path, fights string) {
	if fights != "" {
		f.contended = append(f.contended, Verdict{Object: id, Message: fights})
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

// Contended is the number of objects that are fought about.
func (f Findings) Contended() int { return len(f.contended) }

// ContainerHealth counts the Pods of all workloads, nil if there is no workload.
func (f Findings) ContainerHealth() *application.ContainerHealth {
	_, pods, hasWorkloads := health.RollUp(f.healths)
	if !hasWorkloads {
		return nil
	}
	return &application.ContainerHealth{
		DesiredPods: pods.Desired, RunningPods: pods.Running, CompletedPods: pods.Completed, FailedPods: pods.Failed,
	}
}

// WholeObject is the field of a fight about an object that a rival deletes again and again.
const WholeObject = "(the object itself)"

// FightsText describes the fights about an object, "" if there are none.
func FightsText(fights []pacing.Rivalry) string {
	texts := make([]string, 0, len(fights))
	for _, fight := range fights {
		switch {
		case fight.Field == WholeObject:
			texts = append(texts, "somebody deletes the object again and again: leave it out of the manifest to let it go")
		case strings.Contains(fight.Field, application.Prefix):
			texts = append(texts, fight.Field+", by which the object is known, is changed again and again by "+fight.Rival+": have it leave that alone")
		default:
			texts = append(texts, fight.Field+" is changed again and again by "+fight.Rival+": leave "+fight.Field+" out of the observer schema to let it be")
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
			Status: metav1.ConditionTrue, Reason: writtenOtherwise,
			Message: apierror.Cut("the API server, or a webhook there, writes otherwise: " + texts(f.rewritten)),
		}
	case reason == "":
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: reconciled, Message: "all objects are as the Application says"}
	case reason == Observed:
		reason = driftedReason
	case reason == Unreachable:
		status = metav1.ConditionUnknown
	}
	return metav1.Condition{Status: status, Reason: reason, Message: texts(found)}
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
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: texts(f.unwell)}
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: ready, Message: "all objects are as the Application says, and healthy"}
}

func (f Findings) state() application.State {
	if reason, _ := gravest(f.Verdicts); IsFailure(reason) {
		return application.StateFailed
	}
	state, _, _ := health.RollUp(f.healths)
	switch {
	case len(f.missing) > 0 && state != health.StateFailed:
		return application.StateDegraded
	case len(f.healths) == 0:
		return application.StateRunning
	}
	return application.State(state)
}

// condition is true, for the gravest reason, if any verdict is about it.
func (f Findings) condition(name, otherwise string) metav1.Condition {
	reason, found := gravest(about(name, f.Verdicts))
	return isTrue(reason, found, otherwise)
}

// isTrue is a condition that is true if anything was found.
func isTrue(reason string, found []Verdict, otherwise string) metav1.Condition {
	if len(found) == 0 {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: otherwise}
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: texts(found)}
}
