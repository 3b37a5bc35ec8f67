package telemetry

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/krake-observer/krake-observer/test/check"
)

// What a process keeps counts, garbage does not.
func TestMemoryNeeded(t *testing.T) {
	const mebibyte, limit = 1 << 20, 1 << 30
	former := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(former) })
	if needed := MemoryNeeded(); needed != 0 {
		t.Errorf("without a limit: %v", needed)
	}
	debug.SetMemoryLimit(limit)
	needed := func() float64 {
		runtime.GC()
		return MemoryNeeded() * limit / mebibyte
	}
	before := needed()
	held := make([]byte, 100*mebibyte)
	with := needed()
	if grown := with - before; before <= 0 || grown < 95 || grown > 105 {
		t.Errorf("%.0f MiB before, %.0f MiB more with 100 MiB in use", before, grown)
	}
	runtime.KeepAlive(held)
	held = nil
	if left := needed() - before; left > 5 {
		t.Errorf("%.0f MiB more than before, after the 100 MiB were left: %d", left, len(held))
	}
}

func TestMemoryWatch(t *testing.T) {
	var said []string
	needed := 0.0
	watch := &MemoryWatch{
		Needed: func() float64 { return needed },
		Logger: funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{}),
	}
	for _, phase := range []struct {
		looks int
		needs float64
	}{{5, 0}, {lasting - 1, 0.81}, {1, 0.79}, {lasting, 0.82}, {5, 0.9}, {1, 0.75}, {lasting, 0.85}, {1, 0.69}, {1, 0.75}, {lasting, 0.84}} {
		needed = phase.needs
		for range phase.looks {
			watch.Look()
		}
	}
	check.Equal(t, "said", []string{
		`"level"=0 "msg"="Memory is scarce: raise GOMEMLIMIT and the limit of the container" "neededOfLimit"=0.82`,
		`"level"=0 "msg"="The memory limit suffices again" "neededOfLimit"=0.69`,
		`"level"=0 "msg"="Memory is scarce: raise GOMEMLIMIT and the limit of the container" "neededOfLimit"=0.84`,
	}, said)
}
