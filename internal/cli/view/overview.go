// Package view computes what commands and the page show of an Application: a summary, a description, how an object differs,
// and why a field is observed. It reads and prints nothing.
package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// The states that no agent writes.
const (
	// StateNotAdmitted: the webhook has not admitted it, so no agent sees it.
	StateNotAdmitted = "NotAdmitted"
	// StateAgentUnreachable: the stored status may be outdated.
	StateAgentUnreachable = "AgentUnreachable"
	// StateUnknownFormat: it is for a newer version of webhook, agent and this program.
	StateUnknownFormat = "UnknownFormat"
	// StatePending: no agent has reported on it yet.
	StatePending = "Pending"
	// StateDeleted: it is gone, or is no longer an Application.
	StateDeleted = "Deleted"
)

// Overview is the content of an Application's line. Two are equal if their contents are the
// same, except for ages.
type Overview struct {
	Namespace, Name, Cluster, State string
	Created                         time.Time
	Ready                           metav1.ConditionStatus
	// Message is the problem, in one line.
	Message string
	Mode    application.Mode
	// HeldUntil is the hold of the whole Application, held how many objects have their own hold.
	HeldUntil time.Time
	Held      int
	Drifts    Drifts
}

// Drifts is a summary of the history.
type Drifts struct {
	// Count is the number of drifts in the history.
	Count  int
	isFull bool
	// Open is how many fields differ and are not repaired.
	Open int
	// Last is when the last drift was seen, repaired when the last repair was done.
	Last, Repaired time.Time
}

// OverviewOf summarizes an Application. The state depends on whether its agent is heard.
func OverviewOf(i apps.Item, beats apps.Heartbeats, now time.Time) Overview {
	o := Overview{
		Namespace: i.Stored.Namespace, Name: i.Stored.Name, Cluster: application.ClusterOf(i.Stored),
		Created: i.Stored.CreationTimestamp.Time, Ready: metav1.ConditionUnknown,
	}
	if i.Err != nil {
		o.State, o.Message = StateUnknownFormat, i.Err.Error()
		return o
	}
	app := i.App
	o.Mode, o.Drifts = app.Settings.Mode, driftsOf(app.Status)
	if app.Settings.HoldUntil.After(now) {
		o.HeldUntil = app.Settings.HoldUntil
	}
	for _, object := range app.Status.Objects {
		if until, sure := i.HeldUntil(object, now); sure && !until.IsZero() {
			o.Held++
		}
	}
	o.State, o.Ready, o.Message = standing(i, beats, now)
	return o
}

// standing returns state, readiness and problem. The stored status counts only if an agent
// keeps it up to date.
func standing(i apps.Item, beats apps.Heartbeats, now time.Time) (state string, ready metav1.ConditionStatus, message string) {
	silence := beats.Silence(application.ClusterOf(i.Stored), now)
	switch {
	case !i.IsAdmitted():
		return StateNotAdmitted, metav1.ConditionUnknown, whyNotAdmitted(i.Stored.Namespace)
	case silence != "":
		return StateAgentUnreachable, metav1.ConditionUnknown, silence
	case i.App.Damaged[application.StatusKey] != nil:
		return StatePending, metav1.ConditionUnknown, "the status cannot be read, and its agent is to write it anew: " + i.App.Damaged[application.StatusKey].Error()
	case i.App.Status.State == "":
		return StatePending, metav1.ConditionUnknown, "the agent of cluster " + i.App.Cluster + " has not looked at it yet"
	}
	ready, message = readinessOf(i.App)
	return string(stateOf(i.App)), ready, message
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

func driftsOf(status application.Status) Drifts {
	d := Drifts{isFull: len(status.Drifts) >= application.MaxDrifts}
	for _, drift := range status.Drifts {
		d.Count += max(drift.Count, 1)
		d.Last = slices.MaxFunc([]time.Time{d.Last, drift.Seen.Time}, time.Time.Compare)
		if drift.Repaired != "" {
			at := drift.Seen.Time
			if drift.After != nil {
				at = at.Add(drift.After.Duration).Truncate(time.Second)
			}
			d.Repaired = slices.MaxFunc([]time.Time{d.Repaired, at}, time.Time.Compare)
		}
	}
	if meta.IsStatusConditionTrue(status.Conditions, application.DriftedCondition) {
		for _, object := range status.Objects {
			if len(object.Fields) > 0 {
				d.Open++
			}
		}
		d.Open = max(d.Open, 1) // a missing object has no fields
	}
	return d
}

// Cell returns "0", "3 (5m ago)", "3 (1 open)".
func (d Drifts) Cell(now time.Time) env.Cell {
	switch {
	case d.Open > 0:
		return env.Cell{Text: fmt.Sprintf("%s (%d open)", d.Counted(), d.Open), Colour: env.Yellow}
	case !d.Last.IsZero():
		return env.Cell{Text: d.Counted() + " (" + env.AgoOrNever(d.Last, now) + ")"}
	}
	return env.Cell{Text: d.Counted()}
}

// Counted returns "3", and "12+" if the history may have dropped older drifts.
func (d Drifts) Counted() string {
	if d.isFull {
		return fmt.Sprintf("%d+", d.Count)
	}
	return fmt.Sprint(d.Count)
}

// ModeCell returns "enforce", "held for 45m", "enforce, 1 object held".
func (o Overview) ModeCell(now time.Time) env.Cell {
	if o.Mode == "" {
		return env.Cell{}
	}
	c := env.Cell{Text: string(o.Mode)}
	switch {
	case o.Mode != application.Enforce:
		c.Colour = env.Yellow
	case !o.HeldUntil.IsZero():
		c = env.Cell{Text: "held for " + env.Age(now, o.HeldUntil), Colour: env.Yellow}
	}
	if o.Held > 0 {
		c.Text += ", " + env.Counted(o.Held, "object", "objects") + " held"
	}
	return c
}

// StateCell returns the state in its colour.
func (o Overview) StateCell() env.Cell {
	switch o.State {
	case string(application.StateRunning), string(application.StateCompleted):
		return env.Cell{Text: o.State, Colour: env.Green}
	case string(application.StateFailed), string(application.StateDegraded), StateNotAdmitted, StateAgentUnreachable, StateUnknownFormat:
		return env.Cell{Text: o.State, Colour: env.Red}
	}
	return env.Cell{Text: o.State, Colour: env.Yellow}
}

// ReadyCell returns the readiness in its colour.
func (o Overview) ReadyCell() env.Cell {
	colours := map[metav1.ConditionStatus]env.Colour{metav1.ConditionTrue: env.Green, metav1.ConditionFalse: env.Red, metav1.ConditionUnknown: env.Yellow}
	return env.Cell{Text: string(o.Ready), Colour: colours[o.Ready]}
}
