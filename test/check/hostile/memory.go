package hostile

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
)

// LimitOf returns the memory limit in a shipped Deployment, which must have a GOMEMLIMIT too.
func LimitOf(t *testing.T, path string) uint64 {
	t.Helper()
	text, err := manifests.Files.ReadFile(path)
	var deployment appsv1.Deployment
	if err == nil {
		err = yaml.Unmarshal(text, &deployment)
	}
	if err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	limit := container.Resources.Limits.Memory().Value()
	if limit <= 0 || !hasGoLimit(container) {
		t.Fatalf("%s has no limit of memory, or no GOMEMLIMIT", path)
	}
	return uint64(limit) //nolint:gosec // a limit is not negative
}

func hasGoLimit(container corev1.Container) bool {
	for _, variable := range container.Env {
		if variable.Name == "GOMEMLIMIT" && variable.Value != "" {
			return true
		}
	}
	return false
}

// Memory is what a computation takes.
type Memory struct {
	// Peak is the growth of the heap at its highest, with garbage. Allocated is the sum of all.
	Peak, Allocated uint64
	Took            time.Duration

	// limit is that of the Pod.
	limit uint64
}

// Check fails if a computation takes more than half of the limit at once, or more than four times the
// limit in all.
func (m Memory) Check(t *testing.T) {
	t.Helper()
	t.Log(m)
	if m.Peak > m.limit/2 || m.Allocated > 4*m.limit {
		t.Errorf("%s, and the limit of the Pod is %d MiB", m, m.limit>>20)
	}
}

// String returns "35 MiB at once, 61 MiB in all, in 1.2s".
func (m Memory) String() string {
	return fmt.Sprintf("%d MiB at once, %d MiB in all, in %s", m.Peak>>20, m.Allocated>>20, m.Took.Round(time.Millisecond))
}

// Measure runs a computation of a Pod with a limit. A soft limit of memory has the garbage collected in time, as GOMEMLIMIT
// does in the Pod: a busy machine collects late without it, and the highest heap would show that.
func Measure(limit uint64, compute func()) Memory {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	soft := before.Sys - before.HeapReleased + limit/3
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(soft))) //nolint:gosec // a memory is smaller
	first := heap()
	stop, highest := make(chan struct{}), make(chan uint64)
	go func() {
		most := heap()
		for {
			select {
			case <-stop:
				highest <- max(most, heap())
				return
			case <-time.After(time.Millisecond):
				most = max(most, heap())
			}
		}
	}()
	began := time.Now()
	compute()
	took := time.Since(began)
	close(stop)
	most := <-highest
	runtime.ReadMemStats(&after)
	return Memory{most - min(first, most), after.TotalAlloc - before.TotalAlloc, took, limit}
}

func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
