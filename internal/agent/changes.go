package agent

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// changes does what a change of the right to act calls for. None of it waits for
// an API server.
type changes struct {
	cluster string
	// acting is told if this replica acts for the cluster, and refusal says why it
	// must not.
	acting  func(cluster string, acting bool)
	refusal func() string
	// known and pending give Applications: all, and those of which something is not
	// stored on the hub yet. wake has them looked at.
	known, pending func() []types.NamespacedName
	wake           func([]types.NamespacedName)
	// renewTarget and renewHub leave behind connections over which nothing may
	// arrive any more.
	renewTarget, renewHub func()
	// resyncTarget and resyncHub have what is known compared with what there is.
	resyncTarget, resyncHub func()
	// recorder writes Events to the hub.
	recorder events.EventRecorder
}

// tell is called with one change after the other, which are logged already.
func (c *changes) tell(change right.Change) {
	switch change {
	case right.Acting:
		c.acting(c.cluster, true)
	case right.Refused:
		c.acting(c.cluster, false)
		c.refused(c.refusal())
	case right.TargetLost:
		c.renewTarget()
		c.wake(c.known()) // to say so
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

// duplicateAgent is the reason of the Event of an agent that must not act.
const duplicateAgent = "DuplicateAgent"

// refused tells why where people look for it: at the Lease that is not had.
func (c *changes) refused(why string) {
	lease := &corev1.ObjectReference{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease",
		Namespace: application.AgentsNamespace, Name: application.HubLease(c.cluster),
	}
	c.recorder.Eventf(lease, nil, corev1.EventTypeWarning, duplicateAgent, "Acquire", "%s", cut(why))
}
