package status

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Action is what the agent did to an object, or saw of it. It is the reason of an Event.
type Action string

// The actions, see [Actions]. Those from AskedToShutDown on are about the Application itself.
const (
	Created         Action = "Created"
	Configured      Action = "Configured"
	Reverted        Action = "DriftReverted"
	Recreated       Action = "Recreated"
	Detected        Action = "DriftDetected"
	RepairFailed    Action = "RepairFailed"
	FoughtAbout     Action = "Contended"
	Conflicted      Action = "Conflict"
	Adopted         Action = "Adopted"
	Orphaned        Action = "Orphaned"
	Deleted         Action = "Deleted"
	Abandoned       Action = "Abandoned"
	AskedToShutDown Action = "ShutdownRequested"
	HasShutDown     Action = "ShutdownConfirmed"
	NotShutDown     Action = "ShutdownNotConfirmed"
	Completed       Action = "Completed"
)

// ActionMeaning is an action with what it means.
type ActionMeaning struct {
	Action  Action
	Meaning string
}

// Actions returns all of them.
func Actions() []ActionMeaning {
	return []ActionMeaning{
		{Created, "an object was created"},
		{Configured, "an object was changed, because the spec has"},
		{Reverted, "a change of observed fields was taken back"},
		{Recreated, "an object that somebody had deleted was created again"},
		{Detected, "observed fields differ, and are left as they are: the note says why"},
		{RepairFailed, "a change could not be taken back: the note says why"},
		{FoughtAbout, "somebody changes observed fields again and again"},
		{Conflicted, "an object belongs to somebody else"},
		{Adopted, "an object that was there was taken over"},
		{Orphaned, "an object was let go of, and stays"},
		{Deleted, "an object was deleted"},
		{Abandoned, "an object was given up, and perhaps stays"},
		{AskedToShutDown, "the Application was asked to shut down"},
		{HasShutDown, "it has shut down"},
		{NotShutDown, "it has not confirmed that in time"},
		{Completed, "it has said that its work is done, and was deleted"},
	}
}

// Outcome is one action, for logs, Events and metrics. It has paths of fields, and never their values.
type Outcome struct {
	Action Action
	Object manifest.ID
	// UID is that of the object, by which its Events are found, empty if it is not known.
	UID types.UID
	// Paths are the fields that were patched, or that differ.
	Paths []schema.Path
	// Culprit changed them, for Reverted and Detected.
	Culprit blame.Culprit
	// Reason is one of [Reasons], for Detected, Conflicted and RepairFailed. For FoughtAbout it names the
	// fields and the rivals.
	Reason string
	// NoOp reports that the API server accepted the repair and left the object unchanged.
	NoOp bool
	// Took is the time from when the change was seen until the API server had accepted the repair, for
	// Reverted and Recreated.
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
	if o.Reason != "" {
		fmt.Fprintf(&b, "; left as it is: %s", o.Reason)
	}
	if o.Took > 0 {
		fmt.Fprintf(&b, ", in %s", o.Took.Round(time.Millisecond))
	}
	return b.String()
}

// Fields returns the paths of the fields: "spec.replicas, spec.paused".
func (o Outcome) Fields() string { return join(o.Paths, ", ") }
