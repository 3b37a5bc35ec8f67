package agent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/pkg/observer"
)

const (
	// firstRetry and lastRetry are between what an Application that fails waits:
	// in each minute it is tried fewer than ten times.
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
	// retryJitter is by how much of it a wait may be shorter, so that what failed
	// together is not tried together.
	retryJitter = 0.2
)

// backoff is how long the passes that failed wait. What wakes an Application
// otherwise, an event of the hub or of an object, does not wait.
type backoff struct {
	workqueue.TypedRateLimiter[ctrl.Request]
}

func newBackoff() backoff {
	return backoff{workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry)}
}

// When implements workqueue.TypedRateLimiter.
func (b backoff) When(request ctrl.Request) time.Duration {
	most := b.TypedRateLimiter.When(request)
	least := time.Duration(float64(most) * (1 - retryJitter))
	return wait.Jitter(least, retryJitter/(1-retryJitter))
}

// notifications carries what is seen on the target into the controller's queue.
type notifications struct {
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]
}

// start is called before any reconciliation, and so before any notification.
func (n *notifications) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	n.queue = queue
	return nil
}

func (n *notifications) notify(owner observer.Owner) {
	n.queue.Add(ctrl.Request{NamespacedName: owner})
}

// notifyAfter wakes the Application after a time, at once if that is 0.
func (n *notifications) notifyAfter(owner types.NamespacedName, after time.Duration) {
	n.queue.AddAfter(ctrl.Request{NamespacedName: owner}, after)
}
