package agent

import (
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

const (
	// thriftInterval is how often thrift looks whether the agent is at rest: it is if it
	// has allocated less than littleAllocated since.
	thriftInterval, littleAllocated = 5 * time.Second, 1 << 20
	// worthCollecting is how much the agent must have allocated since memory was freed.
	worthCollecting = 16 << 20
)

// thrift returns unused memory to the system after work. Without allocations the garbage
// collector does not run, and garbage of the size of the used memory stays for ever.
type thrift struct {
	allocated func() uint64
	giveBack  func()

	last, since uint64
}

func newThrift() *thrift { return &thrift{allocated: allocated, giveBack: debug.FreeOSMemory} }

func (t *thrift) look() {
	now := t.allocated()
	rests := now-t.last < littleAllocated
	t.last = now
	if rests && now-t.since >= worthCollecting {
		t.giveBack()
		t.since = now
	}
}

// allocated returns how many bytes this process has allocated in total.
func allocated() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}
