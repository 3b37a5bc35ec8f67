package reconcile

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/health"
)

// findings are what conditions and state are made of.
type findings struct {
	verdicts []verdict
	// rewritten and contended name fields, by object.
	rewritten, contended []verdict
	healths              []health.Health
	// unwell names the objects that are not healthy, missing those that are not there.
	unwell, missing []verdict
}

func (p *pass) findings() findings {
	f := findings{verdicts: p.all()}
	for i := range p.planned {
		id := p.planned[i].ID
		if fight := p.fightAbout(i); fight != "" {
			f.contended = append(f.contended, verdict{object: id, message: fight})
		}
		if forms := p.planned[i].forms; len(forms) > 0 {
			rewritten := verdict{object: id}
			for _, form := range forms {
				rewritten.fields = append(rewritten.fields, form.Path)
			}
			f.rewritten = append(f.rewritten, rewritten)
		}
		switch h := p.summary(i).Health; h.Status {
		case "":
			f.missing = append(f.missing, verdict{object: id})
			continue
		case health.StatusCurrent:
		default:
			f.unwell = append(f.unwell, verdict{object: id, message: string(h.Status) + ": " + h.Message})
		}
		f.healths = append(f.healths, p.summary(i).Health)
	}
	return f
}

// fightAbout names the fields of an object that are fought about, and by whom,
// "" if there are none.
func (p *pass) fightAbout(i int) string {
	fights, _ := p.memory.object(p.planned[i].ID).fights.contended(p.now)
	texts := make([]string, 0, len(fights))
	for _, fight := range fights {
		if fight.field == gone {
			texts = append(texts, "somebody deletes the object again and again: leave it out of the manifest to let it go")
			continue
		}
		if strings.Contains(fight.field, application.Prefix) {
			texts = append(texts, fmt.Sprintf("%s, by which the object is known, is changed again and again by %s: have it leave that alone", fight.field, fight.rival))
			continue
		}
		texts = append(texts, fmt.Sprintf("%s is changed again and again by %s: leave %s out of the observer schema to let it be",
			fight.field, fight.rival, fight.field))
	}
	return strings.Join(texts, "; ")
}

// conclude sets the conditions and the state.
func (r *Reconciler) conclude(app *application.Application, f findings) {
	app.Status.ObservedSpec = app.Spec.Digest()
	reconciled := r.set(app, application.ReconciledCondition, reconciledOf(f))
	r.set(app, application.DriftedCondition, driftedOf(f))
	r.set(app, application.ContendedCondition, isTrue("RivalManager", f.contended, "NoRival"))
	reason, conflicts := gravest(withReason(f.verdicts, reasonAlreadyExists, reasonOwnedByAnother))
	r.set(app, application.ConflictCondition, isTrue(reason, conflicts, "NoConflict"))
	reason, stalled := gravest(withReason(f.verdicts, reasonUnreadable, reasonInvalidTosca, reasonRefused, reasonInvalid, reasonTerminating, reasonKindNotFound, reasonDeletionBlocked))
	r.set(app, application.StalledCondition, isTrue(reason, stalled, reasonProgressing))
	r.set(app, application.ReadyCondition, readyOf(reconciled, f))
	app.Status.State = stateOf(f)
	if r.moving(app) && app.Status.State != application.StateFailed {
		app.Status.State = application.StateMigrating
	}
}

func (r *Reconciler) set(app *application.Application, name string, condition metav1.Condition) metav1.Condition {
	condition.Type, condition.LastTransitionTime = name, metav1.NewTime(r.Now())
	meta.SetStatusCondition(&app.Status.Conditions, condition)
	return condition
}

// isTrue is a condition that is true if anything was found.
func isTrue(reason string, found []verdict, otherwise string) metav1.Condition {
	if len(found) == 0 {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: otherwise}
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: texts(found)}
}

func reconciledOf(f findings) metav1.Condition {
	reason, found := gravest(f.verdicts)
	switch {
	case reason == reasonObserved:
		reason = reasonDrifted
	case reason == "" && len(f.rewritten) > 0:
		return metav1.Condition{
			Status: metav1.ConditionTrue, Reason: reasonWrittenOtherwise,
			Message: cut("the API server, or a webhook there, writes otherwise: " + texts(f.rewritten)),
		}
	case reason == "":
		return metav1.Condition{
			Status: metav1.ConditionTrue, Reason: "Reconciled", Message: "all objects are as the Application says",
		}
	}
	status := metav1.ConditionFalse
	if reason == reasonUnreachable {
		status = metav1.ConditionUnknown
	}
	return metav1.Condition{Status: status, Reason: reason, Message: texts(found)}
}

// driftedOf: of a drift that is reverted at once nobody would see the condition.
func driftedOf(f findings) metav1.Condition {
	reason, found := gravest(withReason(f.verdicts, reasonObserved, reasonHeld, reasonContended, reasonInvalid, reasonIneffective))
	return isTrue(reason, found, "NoDrift")
}

func readyOf(reconciled metav1.Condition, f findings) metav1.Condition {
	switch {
	case reconciled.Status != metav1.ConditionTrue:
		return reconciled
	case len(f.unwell) > 0:
		reason := "InProgress"
		if state := stateOf(f); state == application.StateFailed {
			reason = "Unhealthy"
		}
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: texts(f.unwell)}
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready", Message: "all objects are as the Application says, and healthy"}
}

func stateOf(f findings) application.State {
	if reason, _ := gravest(f.verdicts); isFailure(reason) {
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

// suspended says that nobody looks. The spec that the objects were brought to is
// still the former one.
func (r *Reconciler) suspended(app *application.Application) {
	for _, name := range []string{
		application.ReconciledCondition, application.DriftedCondition, application.ContendedCondition,
		application.ConflictCondition, application.StalledCondition, application.ReadyCondition,
	} {
		r.set(app, name, metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: reasonSuspended, Message: "the Application is suspended: its objects are not looked at until it is resumed (kubectl krake resume)",
		})
	}
	r.moving(app)
	if app.Status.State == "" {
		app.Status.State = application.StateCreating
	}
}

// objects are what there is to tell of single objects.
func (p *pass) objects() []application.ObjectStatus {
	objects := make([]application.ObjectStatus, 0, len(p.planned)+len(p.kept))
	for i, v := range p.all() {
		object := application.ObjectStatus{ID: v.object, Reason: v.reason, Message: v.message}
		for _, path := range v.fields {
			object.Fields = append(object.Fields, path.String())
		}
		if i < len(p.planned) {
			object.Health, object.Hold = p.healthOf(i), p.holds[i]
		}
		objects = append(objects, object)
	}
	return objects
}

func (p *pass) healthOf(i int) string {
	if status := p.summary(i).Status; status != "" {
		return string(status)
	}
	return "NotFound"
}

// services are the addresses of the Services.
func (p *pass) services() map[string]string {
	var addresses map[string]string
	for i := range p.planned {
		if address := p.summary(i).Address; address != "" {
			if addresses == nil {
				addresses = map[string]string{}
			}
			addresses[p.planned[i].Name] = address
		}
	}
	return addresses
}

func containerHealth(f findings) *application.ContainerHealth {
	_, pods, hasWorkloads := health.RollUp(f.healths)
	if !hasWorkloads {
		return nil
	}
	return &application.ContainerHealth{
		DesiredPods: pods.Desired, RunningPods: pods.Running, CompletedPods: pods.Completed, FailedPods: pods.Failed,
	}
}
