package reconcile

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Action is what was done to an object, or seen of it.
type Action string

// The actions. Reverted is the repair of a drift, Configured a change of the
// spec, Detected a drift that is left as it is, Abandoned what is left of an
// Application that somebody has given up.
const (
	Created    Action = "Created"
	Recreated  Action = "Recreated"
	Configured Action = "Configured"
	Reverted   Action = "DriftReverted"
	Detected   Action = "DriftDetected"
	Contended  Action = "Contended"
	Conflict   Action = "Conflict"
	Adopted    Action = "Adopted"
	Orphaned   Action = "Orphaned"
	Deleted    Action = "Deleted"
	Failed     Action = "RepairFailed"
	Abandoned  Action = "Abandoned"
	// Of the Application itself: it was asked to shut down, has, or has not in time;
	// it has said that its work is done.
	AskedToShutDown Action = "ShutdownRequested"
	ShutDown        Action = "ShutdownConfirmed"
	NotShutDown     Action = "ShutdownNotConfirmed"
	Completed       Action = "Completed"
)

// Outcome is one thing that was done. Logs, events and metrics are made from it;
// it holds paths of fields, never their values.
type Outcome struct {
	Action Action
	Object manifest.ID
	// UID is that of the object, empty where it is not known: whoever looks for the
	// Events of an object asks by it.
	UID types.UID
	// Paths are the fields that were patched, or that differ.
	Paths []schema.Path
	// Culprit is who changed them, for Reverted and Detected.
	Culprit blame.Culprit
	// Reason is why nothing was done: one of those of the conditions, for Detected,
	// Conflict and Failed; for Contended it names the fields and the rivals.
	Reason string
	// NoOp: the API server took the repair and left the object as it was.
	NoOp bool
	// Took is the time from when the change was seen until the API server had
	// accepted the repair, for Reverted and Recreated.
	Took time.Duration
}

// String gives "DriftReverted apps/v1 Deployment demo/web: spec.replicas, changed by kubectl-scale (...), in 12ms".
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

// Fields gives the paths of the fields: "spec.replicas, spec.paused".
func (o Outcome) Fields() string { return join(o.Paths) }

func join(paths []schema.Path) string {
	texts := make([]string, 0, len(paths))
	for _, path := range paths {
		texts = append(texts, path.String())
	}
	return strings.Join(texts, ", ")
}
