package reconcile

import (
	"fmt"
	"strings"
	"time"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Action is what was done to an object.
type Action string

// The actions. Reverted is the repair of a drift, Configured a change of the spec.
const (
	Created    Action = "Created"
	Recreated  Action = "Recreated"
	Configured Action = "Configured"
	Reverted   Action = "DriftReverted"
	Deleted    Action = "Deleted"
)

// Outcome is one thing that was done. Logs and events are made from it; it
// holds paths of fields, never their values.
type Outcome struct {
	Action Action
	Object manifest.ID
	// Paths are the fields that were patched.
	Paths []schema.Path
	// Culprit is who changed them, for Reverted.
	Culprit observer.Culprit
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
	if o.Action == Reverted {
		fmt.Fprintf(&b, ", changed by %s", o.Culprit)
	}
	if o.Took > 0 {
		fmt.Fprintf(&b, ", in %s", o.Took.Round(time.Millisecond))
	}
	return b.String()
}

// Fields gives the paths of the fields that were patched: "spec.replicas, spec.paused".
func (o Outcome) Fields() string { return join(o.Paths) }

func join(paths []schema.Path) string {
	texts := make([]string, 0, len(paths))
	for _, path := range paths {
		texts = append(texts, path.String())
	}
	return strings.Join(texts, ", ")
}
