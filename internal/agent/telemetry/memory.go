package telemetry

import (
	"context"
	"math"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/go-logr/logr"
)

const (
	// memoryInterval is the time between two looks at the memory.
	memoryInterval = 30 * time.Second
	// scarce is the part of the memory limit from which the process needs a larger one: the less is
	// left, the more often the garbage collector runs. enough is the part below which it no longer does.
	scarce, enough = 0.8, 0.7
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

// MemoryWatch logs when the memory limit gets too small for what the agent watches, and when it suffices
// again.
type MemoryWatch struct {
	Needed func() float64
	Logger logr.Logger

	isScarce bool
}

// Run is a runnable of the manager.
func (w *MemoryWatch) Run(ctx context.Context) error {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			w.look()
		}
	}
}

func (w *MemoryWatch) look() {
	switch needed := w.Needed(); {
	case needed > scarce && !w.isScarce:
		w.isScarce = true
		w.Logger.Info("The memory limit is too small: raise GOMEMLIMIT and the limit of the container", "needed", needed)
	case needed < enough && w.isScarce:
		w.isScarce = false
		w.Logger.Info("The memory limit suffices again", "needed", needed)
	}
}
