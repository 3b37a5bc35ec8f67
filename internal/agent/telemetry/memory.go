package telemetry

import (
	"math"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/go-logr/logr"
)

// MemoryInterval is the time between two looks at the memory.
const MemoryInterval = 30 * time.Second

const (
	// scarce is the part of the memory limit from which the process needs a larger one: the less is
	// left, the more often the garbage collector runs. Go itself keeps 3 % and unused pages free, so at
	// 0.8 about a sixth is left. enough is the part below which it no longer needs one.
	scarce, enough = 0.8, 0.7
	// lasting is how many looks in a row have to find scarce memory. A start needs more than what
	// follows.
	lasting = 10
)

// MemoryNeeded returns the part of the memory limit (GOMEMLIMIT) that the process needs: what the last
// garbage collection has left, and the memory beside the heap. It returns 0 if there is no limit.
func MemoryNeeded() float64 {
	samples := []runtimemetrics.Sample{
		{Name: "/gc/gomemlimit:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	runtimemetrics.Read(samples)
	var sizes []float64
	for _, sample := range samples {
		sizes = append(sizes, float64(sample.Value.Uint64()))
	}
	limit, live, beside := sizes[0], sizes[1], sizes[2]
	if limit >= math.MaxInt64 {
		return 0
	}
	for _, heap := range sizes[3:] {
		beside -= heap
	}
	return (live + beside) / limit
}

// MemoryWatch logs when memory is scarce for five minutes, and when it suffices again.
type MemoryWatch struct {
	Needed func() float64
	Logger logr.Logger

	// found is how many looks in a row have found scarce memory; said: it was logged.
	found int
	said  bool
}

// Look is to be called in each MemoryInterval.
func (w *MemoryWatch) Look() {
	needed := w.Needed()
	if needed > scarce {
		w.found++
	} else {
		w.found = 0
	}
	switch {
	case w.found >= lasting && !w.said:
		w.said = true
		w.Logger.Info("Memory is scarce: raise GOMEMLIMIT and the limit of the container", "neededOfLimit", needed)
	case needed < enough && w.said:
		w.said = false
		w.Logger.Info("The memory limit suffices again", "neededOfLimit", needed)
	}
}
