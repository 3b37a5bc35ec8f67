package agent

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/krake-observer/krake-observer/pkg/observer"
)

const (
	// firstRetry and lastRetry bound the waits of an Application that fails: in each
	// minute it is tried fewer than ten times.
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
	// retryJitter is the part by which a wait may be shorter, so that Applications that
	// failed together are not tried together.
	retryJitter = 0.2
)

// backoff is the waits after passes that failed. An event of the hub or of an object wakes
// an Application without a wait.
type backoff struct {
	workqueue.TypedRateLimiter[ctrl.Request]

	// waits reports that the last pass of an Application did nothing, and waits for a turn.
	waits func(types.NamespacedName) bool
}

func newBackoff(waits func(types.NamespacedName) bool) backoff {
	return backoff{workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry), waits}
}

// Forget implements workqueue.TypedRateLimiter. A pass that waits for a turn has not succeeded, although it
// returns no error. If it counted as a success, many Applications that fail would be tried without a pause.
func (b backoff) Forget(request ctrl.Request) {
	if !b.waits(request.NamespacedName) {
		b.TypedRateLimiter.Forget(request)
	}
}

// When implements workqueue.TypedRateLimiter.
func (b backoff) When(request ctrl.Request) time.Duration {
	most := b.TypedRateLimiter.When(request)
	least := time.Duration(float64(most) * (1 - retryJitter))
	return wait.Jitter(least, retryJitter/(1-retryJitter))
}

// notifications carries the events of the target into the controller's queue. Those that
// come before there is a queue are dropped: at its start the controller passes over every
// Application.
type notifications struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[ctrl.Request]]
	// passed: the queue was empty once, so each Application has had its first pass.
	passed atomic.Bool
}

// start is called before any reconciliation.
func (n *notifications) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	n.queue.Store(&queue)
	return nil
}

func (n *notifications) notify(owner observer.Owner) { n.notifyAfter(owner, 0) }

// notifyAfter wakes the Application after a time, at once if that is 0.
func (n *notifications) notifyAfter(owner types.NamespacedName, after time.Duration) {
	if queue := n.started(); queue != nil {
		queue.AddAfter(ctrl.Request{NamespacedName: owner}, after)
	}
}

// notifyFirst wakes an Application that has already waited. It comes before all those in the queue.
func (n *notifications) notifyFirst(owner types.NamespacedName) {
	n.notifyWith(1, owner)
}

// notifyAll wakes Applications, which take their turn after those with an event.
func (n *notifications) notifyAll(owners []types.NamespacedName) {
	n.notifyWith(handler.LowPriority, owners...)
}

func (n *notifications) notifyWith(priority int, owners ...types.NamespacedName) {
	queue, ok := n.started().(priorityqueue.PriorityQueue[ctrl.Request])
	if !ok {
		return
	}
	for _, owner := range owners {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, ctrl.Request{NamespacedName: owner})
	}
}

// crowded reports that Applications wait for their first pass after the start. Later, a queue is no crowd: its
// Applications have their objects.
func (n *notifications) crowded() bool {
	n.endCrowd()
	return n.started() != nil && !n.passed.Load()
}

// endCrowd records that the queue is empty, if it is. It is called after each pass, because later
// the queue may have other Applications.
func (n *notifications) endCrowd() {
	if queue := n.started(); queue != nil && queue.Len() == 0 {
		n.passed.Store(true)
	}
}

func (n *notifications) started() workqueue.TypedRateLimitingInterface[ctrl.Request] {
	if queue := n.queue.Load(); queue != nil {
		return *queue
	}
	return nil
}
