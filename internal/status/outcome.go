package status

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Action is an action of the agent on an object, or an observation. It is the reason of an Event.
type Action string

// The actions, see [Actions]. AskedToShutDown and those after it are about the Application itself.
const (
	Created         Action = "Created"
	Configured      Action = "Configured"
	Reverted        Action = "DriftReverted"
	Recreated       Action = "Recreated"
	Detected        Action = "DriftDetected"
	RepairFailed    Action = "RepairFailed"
	ContentionBegan Action = "Contended"
	Conflicted      Action = "Conflict"
	Adopted         Action = "Adopted"
	Orphaned        Action = "Orphaned"
	Deleted         Action = "Deleted"
	Abandoned       Action = "Abandoned"
	AskedToShutDown Action = "ShutdownRequested"
	HasShutDown     Action = "ShutdownConfirmed"
	NotShutDown     Action = "ShutdownNotConfirmed"
	Completed       Action = "Completed"
	HeldBack        Action = "HeldBack"
	Resumed         Action = "Resumed"
	GlassBroken     Action = "GlassBroken"
)

// ActionMeaning is an action with its meaning.
type ActionMeaning struct {
	Action  Action
	Meaning string
}

// Actions returns all actions.
func Actions() []ActionMeaning {
	return []ActionMeaning{
		{Created, "an object was created"},
		{Configured, "an object was changed, because the spec has changed"},
		{Reverted, "a change of observed fields was reverted"},
		{Recreated, "an object that another client had deleted was created again"},
		{Detected, "observed fields differ, and stay unchanged: the note has the reason"},
		{RepairFailed, "a change could not be reverted: the note has the reason"},
		{ContentionBegan, "another client changes observed fields again and again"},
		{Conflicted, "an object belongs to another owner"},
		{Adopted, "an existing object was adopted"},
		{Orphaned, "an object was released, and stays"},
		{Deleted, "an object was deleted"},
		{Abandoned, "an object was given up, and perhaps stays"},
		{AskedToShutDown, "the Application was asked to shut down"},
		{HasShutDown, "it has shut down"},
		{NotShutDown, "it has not confirmed its shutdown in time"},
		{Completed, "it has reported that its work is done, and was deleted"},
		{HeldBack, "a user has stopped repairs: the note says how, and who"},
		{Resumed, "repairs are no longer stopped"},
		{GlassBroken, "a user made a change that the guard refuses others: the note says who"},
	}
}

// Outcome is one action, for logs, Events and metrics. It has paths of fields, but never their
// values.
type Outcome struct {
	Action Action
	Object manifest.ID
	// UID is the UID of the object, for its Events. It is empty if it is not known.
	UID types.UID
	// Paths are the fields that were patched, or that differ.
	Paths []schema.Path
	// Removed are those of Paths that are not observed. Their values were removed, because the API server
	// does not accept a desired value beside them.
	Removed []schema.Path
	// Culprit changed them, for Reverted and Detected.
	Culprit blame.Culprit
	// Reason is one of [Reasons], for Detected, Conflicted and RepairFailed. For ContentionBegan it names the
	// fields and the competing writers, for HeldBack the mode or hold, and the user, and for GlassBroken the user.
	Reason string
	// NoOp reports that the API server accepted the repair and left the object unchanged.
	NoOp bool
	// Took is the time from the first sight of the change until the API server accepted the repair.
	// It is set for Reverted and Recreated.
	Took time.Duration
}

// String returns "DriftReverted apps/v1 Deployment demo/web: spec.replicas, changed by kubectl-scale (...), in 12ms".
func (o Outcome) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", o.Action, o.Object)
	if len(o.Paths) > 0 {
		fmt.Fprintf(&b, ": %s", o.Fields())
	}
	if len(o.Paths) > 0 && (o.Action == Reverted || o.Action == Detected) {
		fmt.Fprintf(&b, ", changed by %s", o.Culprit)
	}
	switch {
	case o.Action == GlassBroken && len(o.Paths) == 0:
		fmt.Fprintf(&b, ", deleted by %s, a user who breaks the glass", o.Reason)
	case o.Action == GlassBroken:
		fmt.Fprintf(&b, ", changed by %s, a user who breaks the glass", o.Reason)
	case o.Action == HeldBack:
		fmt.Fprintf(&b, ": %s", o.Reason)
	case o.Reason != "":
		fmt.Fprintf(&b, "; left unchanged: %s", o.Reason)
	}
	if len(o.Removed) > 0 {
		fmt.Fprintf(&b, "; removed %s, which cannot stand beside a desired value", join(o.Removed, ", "))
	}
	if o.Took > 0 {
		fmt.Fprintf(&b, ", in %s", o.Took.Round(time.Millisecond))
	}
	return b.String()
}

// Fields returns the paths of the fields: "spec.replicas, spec.paused".
func (o Outcome) Fields() string { return join(o.Paths, ", ") }
