package reconcile

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/krake-observer/krake-observer/internal/apply"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// together writes objects of one pass at the same time. Decisions read and change the pass, so
// one object at a time has the turn; it gives the turn up while it waits for the API server.
type together struct {
	turn sync.Mutex
	// slots are those of the agent for writes beyond one per pass; nil: there are none.
	slots *semaphore.Weighted
	// isBroken: a write has panicked. panicked is such a panic in another goroutine than that of
	// the pass, with its stack.
	isBroken bool
	panicked string
}

// each calls write for each object, and returns when all calls have returned, also if one panics:
// they change the pass. Calls beyond the free slots are made one after the other. No call begins
// after a panic.
func (t *together) each(objects []*object, write func(*object)) {
	var group sync.WaitGroup
	defer func() {
		group.Wait()
		if t.panicked != "" {
			panic(t.panicked) // in the goroutine of the pass, whose caller recovers
		}
	}()
	for i, o := range objects {
		if i == len(objects)-1 || t.slots == nil || !t.slots.TryAcquire(1) {
			t.inTurn(func() { write(o) })
			continue
		}
		group.Go(func() {
			defer t.slots.Release(1)
			defer t.catch()
			t.inTurn(func() { write(o) })
		})
	}
}

// inTurn calls do when it has the turn.
func (t *together) inTurn(do func()) {
	t.turn.Lock()
	defer t.turn.Unlock()
	if t.isBroken {
		return
	}
	returned := false
	defer func() { t.isBroken = t.isBroken || !returned }()
	do()
	returned = true
}

// catch keeps a panic of a goroutine for the goroutine of the pass.
func (t *together) catch() {
	if cause := recover(); cause != nil {
		text := fmt.Sprintf("%v\n%s", cause, debug.Stack())
		t.turn.Lock()
		defer t.turn.Unlock()
		t.panicked = text
	}
}

// yielding is a cluster whose callers have the turn, and give it up while they wait.
type yielding struct {
	Cluster

	turn *sync.Mutex
}

// Create implements Cluster.
func (y yielding) Create(ctx context.Context, ref manifest.Ref, object map[string]any) (map[string]any, error) {
	y.turn.Unlock()
	defer y.turn.Lock()
	return y.Cluster.Create(ctx, ref, object)
}

// Patch implements Cluster. The repair is decided in turn.
func (y yielding) Patch(ctx context.Context, ref manifest.Ref, live map[string]any, repair apply.Repair) (map[string]any, error) {
	y.turn.Unlock()
	defer y.turn.Lock()
	return y.Cluster.Patch(ctx, ref, live, func(live map[string]any) (schema.Patch, error) {
		y.turn.Lock()
		defer y.turn.Unlock()
		return repair(live)
	})
}

// TryPatch implements Cluster.
func (y yielding) TryPatch(ctx context.Context, ref manifest.Ref, patch schema.Patch) error {
	y.turn.Unlock()
	defer y.turn.Lock()
	return y.Cluster.TryPatch(ctx, ref, patch)
}
