package right

import (
	"context"
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
	// A failed request is repeated after hubRetry to hubRetry*(1+hubRetrySpread): thousands
	// of agents must not send at the same moment when their hub is back.
	hubRetry       = 2 * time.Second
	hubRetrySpread = 1.5
)

// hubKeeper keeps the Lease on the hub. It asks for it once this process has held the Lease
// on the target.
type hubKeeper struct {
	options   Options
	state     *state
	target    *targetKeeper // nil: without a Lease there
	lease     *leaseRecord
	targetUID types.UID // the identity of the target
	ours      bool      // it was had
	failing   bool
	// first is the first shard's Lease on the target, for the other shards. followed is its UID, to which the Lease
	// on the hub was bound when this shard began to act.
	first    *leaseRecord
	followed string
}

func newHubKeeper(options Options, state *state, target *targetKeeper) *hubKeeper {
	h := &hubKeeper{
		options: options,
		state:   state,
		target:  target,
		lease: &leaseRecord{
			client:    options.Hub.Leases(application.AgentsNamespace),
			namespace: application.AgentsNamespace,
			name:      application.HubLease(options.Cluster),
			server:    "hub",
			identity:  options.Identity,
			lasts:     beatsOfHub * options.Heartbeat,
		},
	}
	if target != nil {
		first := *target.leases.all[0] // the other keeper writes its own record at any time
		h.first = &first
	}
	return h
}

// keep acquires the Lease and renews it until the context ends or it is lost.
func (h *hubKeeper) keep(ctx context.Context) error {
	if known, err := h.awaitTarget(ctx); err != nil || !known {
		return err
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

// awaitTarget waits for the Lease on the target, and reads the identity of the target. It
// returns false if the context ends, and ErrTargetIsHub if the target is the hub and must not be.
func (h *hubKeeper) awaitTarget(ctx context.Context) (known bool, err error) {
	if h.target != nil {
		select {
		case <-h.target.held:
		case <-ctx.Done():
			return false, nil
		}
	}
	for first := true; ; first = false {
		uid, err := h.askTarget(ctx)
		switch {
		case err == nil && uid == h.options.HubUID:
			return false, ErrTargetIsHub
		case err == nil:
			h.targetUID = uid
			return true, nil
		}
		if first {
			h.options.Logger.Error(err, "the target's identity cannot be read; it is tried again")
		}
		if !pause(ctx, h.options.RetryPeriod) {
			return false, nil
		}
	}
}

func (h *hubKeeper) askTarget(ctx context.Context) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, h.options.RenewDeadline)
	defer cancel()
	return h.options.TargetUID(ctx)
}

// step is one request for the Lease, and returns when the next one is due. The end of the
// process does not cut it off, as in [targetKeeper.step].
func (h *hubKeeper) step(ctx context.Context) (next time.Duration, err error) {
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), hubTimeout)
	defer cancel()
	granted, err := h.ask(request)
	switch {
	case endsProcess(err):
		return 0, err
	case ctx.Err() != nil:
		return 0, nil
	case err != nil:
		h.failed(err)
		return h.soon(), nil
	}
	h.answered()
	if !granted && h.state.refusal() == "" {
		return h.soon(), nil
	}
	if granted && !h.ours {
		h.ours = true
		h.state.act()
	}
	return jittered(h.options.Heartbeat), nil
}

// ask renews the Lease, or takes it if that is allowed. Only the first shard has it; the others read that it is the
// first shard's.
func (h *hubKeeper) ask(ctx context.Context) (granted bool, err error) {
	if h.target == nil || h.target.leases.shard == 0 {
		from, err := h.lease.ask(ctx, h.ours, h.claim, h.mayTake)
		return !from.IsZero(), err
	}
	return h.follow(ctx)
}

// jittered returns the interval of heartbeats, varied by up to a tenth: agents whose hub
// is back must not stay in step.
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

// mayTake decides by the agent that has the cluster's name.
func (h *hubKeeper) mayTake() (bool, error) {
	if h.lease.known == nil {
		return true, nil
	}
	if h.ours {
		return h.isStillOurs()
	}
	if h.isOfAnotherTarget() {
		h.refuseOtherTarget()
		return false, nil
	}
	if h.lease.isFree() {
		return true, nil
	}
	if h.annotation(application.TargetLeaseAnnotation) == string(h.targetLease()) {
		// One of our replicas held it, and has lost the Lease on the target to us.
		return h.target == nil || h.target.check() == nil, nil
	}
	h.state.refuse(fmt.Sprintf("DuplicateAgent: %s is held by another agent of this target, %q, which is none of its replicas; "+
		"this one waits until that agent is silent for %s", h.lease, h.lease.holder(), h.lease.lasts))
	return false, nil
}

// follow reads the Lease for a shard that does not have it. That shard may act while the Lease belongs to the first
// shard of this agent.
func (h *hubKeeper) follow(ctx context.Context) (bool, error) {
	if err := h.lease.read(ctx); err != nil {
		return false, err
	}
	switch {
	case h.lease.known == nil:
		return h.ours, nil // the first shard writes it again
	case h.ours:
		return h.isStillFollowed()
	case h.isOfAnotherTarget():
		h.refuseOtherTarget()
		return false, nil
	}
	// The other keeper reports that the target does not answer.
	known := h.first.read(ctx) == nil && h.first.known != nil
	h.followed = h.annotation(application.TargetLeaseAnnotation)
	return known && h.followed == string(h.first.known.UID), nil
}

// isStillFollowed returns ErrLost if the Lease belongs to another agent, of this target or of another one.
func (h *hubKeeper) isStillFollowed() (bool, error) {
	if h.annotation(application.TargetAnnotation) != string(h.targetUID) || h.annotation(application.TargetLeaseAnnotation) != h.followed {
		return false, fmt.Errorf("%w: %s was taken by another agent, its holder is %q", ErrLost, h.lease, h.lease.holder())
	}
	return true, nil
}

func (h *hubKeeper) isOfAnotherTarget() bool {
	bound := h.annotation(application.TargetAnnotation)
	return bound != "" && bound != string(h.targetUID)
}

func (h *hubKeeper) refuseOtherTarget() {
	h.state.refuse(fmt.Sprintf("DuplicateAgent: %s belongs to the agent of another target, %s, whose last holder is %q; this target is %s. "+
		"To use the name for this target, stop that agent and delete the Lease", h.lease, h.annotation(application.TargetAnnotation), h.lease.holder(), h.targetUID))
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
	h.state.report(HubLost)
}

func (h *hubKeeper) answered() {
	if !h.failing {
		return
	}
	h.failing = false
	h.options.Logger.Info("the hub is back")
	h.state.report(HubBack)
}
