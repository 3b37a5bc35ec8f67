package right

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	// beatsOfHub is how many heartbeats the Lease on the hub lasts.
	beatsOfHub = 4
	// hubTimeout is how long a request to the hub may take.
	hubTimeout = 5 * time.Second
	// What failed is tried again after hubRetry at least and hubRetry*(1+hubRetrySpread) at
	// most: thousands of agents must not ask in step when their hub is back.
	hubRetry       = 2 * time.Second
	hubRetrySpread = 1.5
)

// hubKeeper keeps the Lease on the hub. It asks for it when that on the target was had.
type hubKeeper struct {
	options   Options
	standing  *standing
	target    *targetKeeper // nil: without a Lease there
	lease     *leaseRecord
	targetUID types.UID // the identity of the target
	ours      bool      // it was had
	failing   bool
}

func newHubKeeper(options Options, standing *standing, target *targetKeeper) *hubKeeper {
	return &hubKeeper{
		options:  options,
		standing: standing,
		target:   target,
		lease: &leaseRecord{
			client:    options.Hub.Leases(application.AgentsNamespace),
			namespace: application.AgentsNamespace,
			name:      application.HubLease(options.Cluster),
			server:    "hub",
			identity:  options.Identity,
			lasts:     beatsOfHub * options.Heartbeat,
		},
	}
}

// keep asks for the Lease and renews it until the context ends or it is lost.
func (h *hubKeeper) keep(ctx context.Context) error {
	if !h.awaitTarget(ctx) {
		return nil
	}
	for {
		next, err := h.step(ctx)
		if err != nil {
			return err
		}
		if !pause(ctx, next) {
			return nil
		}
	}
}

// awaitTarget waits until the Lease on the target was had, and asks for the identity
// of the target. It reports whether the context has not ended.
func (h *hubKeeper) awaitTarget(ctx context.Context) bool {
	if h.target != nil {
		select {
		case <-h.target.held:
		case <-ctx.Done():
			return false
		}
	}
	for first := true; ; first = false {
		uid, err := h.askTarget(ctx)
		if err == nil {
			h.targetUID = uid
			return true
		}
		if first {
			h.options.Logger.Error(err, "the target's identity is not known, and is asked for again")
		}
		if !pause(ctx, h.options.RetryPeriod) {
			return false
		}
	}
}

func (h *hubKeeper) askTarget(ctx context.Context) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, h.options.RenewDeadline)
	defer cancel()
	return h.options.TargetUID(ctx)
}

// step is one request for the Lease, and returns when the next one is due.
func (h *hubKeeper) step(ctx context.Context) (next time.Duration, err error) {
	request, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	from, err := h.lease.ask(request, h.ours, h.claim, h.mayTake)
	switch {
	case errors.Is(err, ErrLost):
		return 0, err
	case ctx.Err() != nil:
		return 0, nil
	case err != nil:
		h.failed(err)
		return h.soon(), nil
	}
	h.answered()
	if from.IsZero() && h.standing.refusal() == "" {
		return h.soon(), nil
	}
	if !from.IsZero() && !h.ours {
		h.ours = true
		h.standing.act()
	}
	return jittered(h.options.Heartbeat), nil
}

// jittered is a heartbeat, give or take a tenth: agents that have found their hub
// again at the same time must not go on in step.
func jittered(heartbeat time.Duration) time.Duration { return wait.Jitter(heartbeat*9/10, 2.0/9) }

func (h *hubKeeper) soon() time.Duration {
	return min(h.options.Heartbeat, wait.Jitter(hubRetry, hubRetrySpread))
}

// claim binds the Lease to our target.
func (h *hubKeeper) claim() *coordinationv1.Lease {
	wanted := h.lease.claim()
	if wanted.Annotations == nil {
		wanted.Annotations = map[string]string{}
	}
	wanted.Annotations[application.TargetAnnotation] = string(h.targetUID)
	wanted.Annotations[application.TargetLeaseAnnotation] = string(h.targetLease())
	return wanted
}

// targetLease is the UID of the Lease on the target.
func (h *hubKeeper) targetLease() types.UID {
	if h.target == nil {
		return ""
	}
	return h.target.uid
}

// mayTake finds out which agent has the cluster's name.
func (h *hubKeeper) mayTake() (bool, error) {
	if h.lease.known == nil {
		return true, nil
	}
	if h.ours {
		return h.isStillOurs()
	}
	if bound := h.annotation(application.TargetAnnotation); bound != "" && bound != string(h.targetUID) {
		h.standing.refuse(fmt.Sprintf("DuplicateAgent: %s belongs to the agent of another target, %s, of which the last holder is %q; this target is %s. "+
			"If it is to have the name, stop that agent and delete the Lease", h.lease, bound, h.lease.holder(), h.targetUID))
		return false, nil
	}
	if h.lease.isFree() {
		return true, nil
	}
	if h.annotation(application.TargetLeaseAnnotation) == string(h.targetLease()) {
		// A replica of ours had it, and has lost the Lease on the target to us.
		return h.target == nil || h.target.check() == nil, nil
	}
	h.standing.refuse(fmt.Sprintf("DuplicateAgent: %s is held by another agent of this target, %q, which is none of its replicas; "+
		"it is waited for until that agent is silent for %s", h.lease, h.lease.holder(), h.lease.lasts))
	return false, nil
}

// isStillOurs: no other process had it since the last heartbeat.
func (h *hubKeeper) isStillOurs() (bool, error) {
	if h.annotation(application.TargetAnnotation) != string(h.targetUID) || h.lease.holder() != "" && !h.lease.isOurs() {
		return false, fmt.Errorf("%w: %s was taken, its holder is %q", ErrLost, h.lease, h.lease.holder())
	}
	return true, nil
}

func (h *hubKeeper) annotation(key string) string { return h.lease.known.Annotations[key] }

func (h *hubKeeper) failed(err error) {
	if h.failing {
		return
	}
	h.failing = true
	h.options.Logger.Error(err, "the hub is lost")
	h.standing.report(HubLost)
}

func (h *hubKeeper) answered() {
	if !h.failing {
		return
	}
	h.failing = false
	h.options.Logger.Info("the hub is back")
	h.standing.report(HubBack)
}
