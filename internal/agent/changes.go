package agent

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
	"github.com/krake-observer/krake-observer/internal/right"
)

// changes reacts to each change of the right to act. No reaction waits for an API
// server.
type changes struct {
	cluster string
	// acting records whether this replica acts for the cluster, and refusal returns why it
	// must not.
	acting  func(cluster string, acting bool)
	refusal func() string
	// known are all Applications, and pending those with a due write to the hub.
	// wake requests a pass for each.
	known, pending func() []types.NamespacedName
	wake           func([]types.NamespacedName)
	// renewTarget and renewHub replace connections that may be dead.
	renewTarget, renewHub func()
	// resyncTarget and resyncHub request a comparison of the caches with the API servers.
	resyncTarget, resyncHub func()
	// recorder writes Events to the hub.
	recorder events.EventRecorder
}

// react is called with one change at a time, which is logged already.
func (c *changes) react(change right.Change) {
	switch change {
	case right.Acting:
		c.acting(c.cluster, true)
	case right.Refused:
		c.acting(c.cluster, false)
		telemetry.ReportRefusal(c.recorder, c.cluster, c.refusal())
	case right.TargetLost:
		c.renewTarget()
		c.wake(c.known()) // their conditions say so
	case right.TargetBack:
		c.renewTarget()
		c.resyncTarget()
		c.wake(c.known())
	case right.HubLost:
		c.renewHub()
	case right.HubBack:
		c.renewHub()
		c.resyncHub()
		c.wake(c.pending())
	}
}
