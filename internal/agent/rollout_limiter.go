package agent

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// rolloutLimiter limits the Applications of which a new spec, or the deletion, is carried out at the same time, to
// half of the workers. Such a pass writes many objects, and the other half is free for repairs. Applications
// beyond the limit wait in order, and occupy no worker. After the start of the agent there is no limit until the
// queue was empty once: before, the agent knows of few drifts.
type rolloutLimiter struct {
	most    int
	wake    func(types.NamespacedName)
	crowded func() bool

	mu sync.Mutex
	// busy have a turn. woken are to take one in their next pass.
	busy, woken map[types.NamespacedName]bool
	// declined have a pass that got no turn, and has not ended.
	declined map[types.NamespacedName]bool
	// queue is those that wait, in order, and waiting are the same.
	queue   []types.NamespacedName
	waiting map[types.NamespacedName]bool
}

func newRolloutLimiter(workers int, wake func(types.NamespacedName), crowded func() bool) *rolloutLimiter {
	return &rolloutLimiter{
		most: max(1, workers/2), wake: wake, crowded: crowded,
		busy: map[types.NamespacedName]bool{}, woken: map[types.NamespacedName]bool{},
		declined: map[types.NamespacedName]bool{}, waiting: map[types.NamespacedName]bool{},
	}
}

// take reports whether the running pass of an Application may carry out a new spec or the deletion. If
// not, the Application is woken when it may.
func (t *rolloutLimiter) take(name types.NamespacedName) bool {
	if t.crowded() {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	hasTurn := t.busy[name] || t.woken[name]
	if !hasTurn && len(t.busy)+len(t.woken) >= t.most {
		if !t.waiting[name] {
			t.waiting[name] = true
			t.queue = append(t.queue, name)
		}
		t.declined[name] = true
		return false
	}
	t.busy[name] = true
	delete(t.woken, name)
	return true
}

// end is called after each pass, with a turn or without, and wakes the next Applications. One that was
// woken counts until its next pass ends, whether or not it still needs the turn.
func (t *rolloutLimiter) end(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, name)
	if !t.declined[name] { // otherwise it was woken for its next pass
		delete(t.woken, name)
	}
	delete(t.declined, name)
	for len(t.queue) > 0 && len(t.busy)+len(t.woken) < t.most {
		next := t.queue[0]
		t.queue = t.queue[1:]
		delete(t.waiting, next)
		t.woken[next] = true
		t.wake(next)
	}
}

// count returns how many Applications wait for a turn.
func (t *rolloutLimiter) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queue)
}

// isWaiting reports that an Application waits for a turn, or was woken and has not begun its pass.
func (t *rolloutLimiter) isWaiting(name types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting[name] || t.woken[name]
}
