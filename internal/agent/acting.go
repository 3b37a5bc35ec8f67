package agent

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/krake-observer/krake-observer/internal/leases"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// right is the right to act: a [leases.Tenure].
type right interface {
	Wait(ctx context.Context) error
	Target() error
	Grace() time.Duration
}

// confirmed is the right to act on what was compared with what there is.
type confirmed struct {
	right

	compared <-chan struct{}
}

// Wait implements right.
func (c confirmed) Wait(ctx context.Context) error {
	if err := c.right.Wait(ctx); err != nil {
		return err
	}
	select {
	case <-c.compared:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// onceActing is a runnable that begins when this replica may act.
func onceActing(right right, run func(context.Context) error) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if err := right.Wait(ctx); err != nil {
			return err // that of the context: the agent ends
		}
		return run(ctx)
	}
}

// outliving gives a context that ends that much later than another one: a request
// that is cut off may have been carried out, and nobody would tell of it.
func outliving(ctx context.Context, grace time.Duration) (longer context.Context, done func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

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
func (c *changes) tell(change leases.Change) {
	switch change {
	case leases.Acting:
		c.acting(c.cluster, true)
	case leases.Refused:
		c.acting(c.cluster, false)
		c.refused(c.refusal())
	case leases.TargetLost:
		c.renewTarget()
		c.wake(c.known()) // to say so
	case leases.TargetBack:
		c.renewTarget()
		c.resyncTarget()
		c.wake(c.known())
	case leases.HubLost:
		c.renewHub()
	case leases.HubBack:
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
