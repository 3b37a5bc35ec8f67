package reconcile

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// inParallel calls write for each object, and returns when all calls have returned, also if one
// panics. Calls beyond the free slots are made one after the other.
func inParallel(slots *semaphore.Weighted, objects []*object, write func(*object)) {
	var group sync.WaitGroup
	var panicked atomic.Value // a panic in another goroutine, with its stack
	defer func() {
		group.Wait()
		if cause := panicked.Load(); cause != nil {
			panic(cause) // in the goroutine of the pass, whose caller recovers
		}
	}()
	for i, o := range objects {
		if i == len(objects)-1 || slots == nil || !slots.TryAcquire(1) {
			write(o)
			continue
		}
		group.Go(func() {
			defer slots.Release(1)
			defer func() {
				if cause := recover(); cause != nil {
					panicked.Store(fmt.Sprintf("%v\n%s", cause, debug.Stack()))
				}
			}()
			write(o)
		})
	}
}
