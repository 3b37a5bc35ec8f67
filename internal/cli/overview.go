package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// The states that no agent writes.
const (
	// stateNotAdmitted: the webhook has not admitted it, so no agent sees it.
	stateNotAdmitted = "NotAdmitted"
	// stateAgentUnreachable: the stored status may be outdated.
	stateAgentUnreachable = "AgentUnreachable"
	// stateUnknownFormat: it is for a newer version of webhook, agent and this program.
	stateUnknownFormat = "UnknownFormat"
	// statePending: no agent has reported on it yet.
	statePending = "Pending"
	// stateDeleted: it is gone, or is no longer an Application.
	stateDeleted = "Deleted"
)

// overview is the content of an Application's line. Two are equal if their contents are the
// same, except for ages.
type overview struct {
	namespace, name, cluster, state string
	created                         time.Time
	ready                           metav1.ConditionStatus
	// message is the problem, in one line.
	message string
	mode    application.Mode
	// heldUntil is the hold of the whole Application, held how many objects have their own hold.
	heldUntil time.Time
	held      int
	drifts    drifts
}

// drifts is a summary of the history.
type drifts struct {
	// count is the number of drifts in the history.
	count  int
	isFull bool
	// open is how many fields differ and are not repaired.
	open int
	// last is when the last drift was seen, repaired when the last repair was done.
	last, repaired time.Time
}

func overviewOf(i item, beats heartbeats, now time.Time) overview {
	o := overview{
		namespace: i.stored.Namespace, name: i.stored.Name, cluster: application.ClusterOf(i.stored),
		created: i.stored.CreationTimestamp.Time, ready: metav1.ConditionUnknown,
	}
	if i.err != nil {
		o.state, o.message = stateUnknownFormat, i.err.Error()
		return o
	}
	app := i.app
	o.mode, o.drifts = app.Wishes.Mode, driftsOf(app.Status)
	if app.Wishes.HoldUntil.After(now) {
		o.heldUntil = app.Wishes.HoldUntil
	}
	for _, object := range app.Status.Objects {
		if until, sure := i.heldUntil(object, now); sure && !until.IsZero() {
			o.held++
		}
	}
	o.state, o.ready, o.message = standing(i, beats, now)
	return o
}

// standing returns state, readiness and problem. The stored status counts only if an agent
// keeps it up to date.
func standing(i item, beats heartbeats, now time.Time) (state string, ready metav1.ConditionStatus, message string) {
	silence := beats.silence(application.ClusterOf(i.stored), now)
	switch {
	case !i.admitted():
		return stateNotAdmitted, metav1.ConditionUnknown, whyNotAdmitted(i.stored.Namespace)
	case silence != "":
		return stateAgentUnreachable, metav1.ConditionUnknown, silence
	case i.app.Damaged[application.StatusKey] != nil:
		return statePending, metav1.ConditionUnknown, "the status cannot be read, and its agent is to write it anew: " + i.app.Damaged[application.StatusKey].Error()
	case i.app.Status.State == "":
		return statePending, metav1.ConditionUnknown, "the agent of cluster " + i.app.Cluster + " has not looked at it yet"
	}
	ready, message = readinessOf(i.app)
	return string(stateOf(i.app)), ready, message
}

// whyNotAdmitted returns why no agent sees an Application. In some namespaces the API server
// does not call the webhook.
func whyNotAdmitted(namespace string) string {
	switch namespace {
	case metav1.NamespaceSystem, application.SystemNamespace, application.AgentsNamespace:
		return "no Application is admitted in namespace " + namespace + ", and no agent sees it: create it in another one"
	}
	return "the webhook has not admitted it, so that no agent sees it: write it again (kubectl apply) once the webhook is installed and answers"
}

// stateOf returns the state. A deletion is known before the agent reports it.
func stateOf(app *application.Application) application.State {
	reported := []application.State{application.StateDeleting, application.StateWaiting, application.StateReady, application.StateDegraded}
	if app.Deleted && !slices.Contains(reported, app.Status.State) {
		return application.StateDeleting
	}
	return app.Status.State
}

// readinessOf returns the condition Ready, and the problem. A condition of an older spec does
// not count.
func readinessOf(app *application.Application) (ready metav1.ConditionStatus, message string) {
	condition := meta.FindStatusCondition(app.Status.Conditions, application.ReadyCondition)
	switch {
	case condition == nil:
		return metav1.ConditionUnknown, ""
	case condition.Status != metav1.ConditionTrue:
		return condition.Status, told(*condition)
	case app.Deleted:
		return metav1.ConditionFalse, "the Application is being deleted, and its agent has not begun yet"
	case app.Status.ClusterName() != app.Cluster || app.Status.ObservedSpec != app.Spec.Digest():
		return metav1.ConditionUnknown, "the agent of cluster " + app.Cluster + " has not carried out the present spec yet"
	}
	for _, name := range []string{application.ContendedCondition, application.DriftedCondition, application.StatusTruncatedCondition} {
		if other := meta.FindStatusCondition(app.Status.Conditions, name); other != nil && other.Status == metav1.ConditionTrue {
			return condition.Status, told(*other)
		}
	}
	return condition.Status, ""
}

// told returns "Held: apps/v1 Deployment demo/web: spec.replicas: held until ...".
func told(condition metav1.Condition) string {
	return strings.TrimSuffix(condition.Reason+": "+condition.Message, ": ")
}

func driftsOf(status application.Status) drifts {
	d := drifts{isFull: len(status.Drifts) >= application.MaxDrifts}
	for _, drift := range status.Drifts {
		d.count += max(drift.Count, 1)
		d.last = slices.MaxFunc([]time.Time{d.last, drift.Seen.Time}, time.Time.Compare)
		if drift.Repaired != "" {
			at := drift.Seen.Time
			if drift.After != nil {
				at = at.Add(drift.After.Duration).Truncate(time.Second)
			}
			d.repaired = slices.MaxFunc([]time.Time{d.repaired, at}, time.Time.Compare)
		}
	}
	if meta.IsStatusConditionTrue(status.Conditions, application.DriftedCondition) {
		for _, object := range status.Objects {
			if len(object.Fields) > 0 {
				d.open++
			}
		}
		d.open = max(d.open, 1) // a missing object has no fields
	}
	return d
}

// cell returns "0", "3 (5m ago)", "3 (1 open)".
func (d drifts) cell(now time.Time) cell {
	switch {
	case d.open > 0:
		return cell{fmt.Sprintf("%s (%d open)", d.counted(), d.open), yellow}
	case !d.last.IsZero():
		return cell{text: d.counted() + " (" + agoOrNever(d.last, now) + ")"}
	}
	return cell{text: d.counted()}
}

// counted returns "3", and "12+" if the history may have dropped older drifts.
func (d drifts) counted() string {
	if d.isFull {
		return fmt.Sprintf("%d+", d.count)
	}
	return fmt.Sprint(d.count)
}

// modeCell returns "enforce", "held for 45m", "enforce, 1 object held".
func (o overview) modeCell(now time.Time) cell {
	if o.mode == "" {
		return cell{}
	}
	c := cell{text: string(o.mode)}
	switch {
	case o.mode != application.Enforce:
		c.colour = yellow
	case !o.heldUntil.IsZero():
		c = cell{"held for " + age(now, o.heldUntil), yellow}
	}
	if o.held > 0 {
		c.text += ", " + counted(o.held, "object", "objects") + " held"
	}
	return c
}

func (o overview) stateCell() cell {
	switch o.state {
	case string(application.StateRunning), string(application.StateCompleted):
		return cell{o.state, green}
	case string(application.StateFailed), string(application.StateDegraded), stateNotAdmitted, stateAgentUnreachable, stateUnknownFormat:
		return cell{o.state, red}
	}
	return cell{o.state, yellow}
}

func (o overview) readyCell() cell {
	colours := map[metav1.ConditionStatus]colour{metav1.ConditionTrue: green, metav1.ConditionFalse: red, metav1.ConditionUnknown: yellow}
	return cell{string(o.ready), colours[o.ready]}
}
