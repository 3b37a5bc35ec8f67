package workload

import (
	"fmt"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/kit"
)

// A refused manifest, or one with a warning, would not be a usual one.
func TestManifestIsAdmittedWithoutAWarning(t *testing.T) {
	for size, objects := range map[int]int{10 << 10: 10, 100 << 10: 100, 250 << 10: 100} {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			text := Manifest(size, 1)
			if len(text) != size {
				t.Errorf("it has %d bytes", len(text))
			}
			prepared := mutate.PrepareForCreate(kit.Application("default", "app", text))
			if len(prepared.Refusals)+len(prepared.Warnings) > 0 {
				t.Errorf("refusals %v, warnings %v", prepared.Refusals, prepared.Warnings)
			}
			if len(prepared.Wanted) != objects {
				t.Errorf("it has %d objects, want %d", len(prepared.Wanted), objects)
			}
		})
	}
}

func TestManifestIsTheSameForTheSameSeed(t *testing.T) {
	first, again, other := Manifest(10<<10, 1), Manifest(10<<10, 1), Manifest(10<<10, 2)
	if first != again {
		t.Error("it differs")
	}
	if first == other {
		t.Error("it is the same for another seed")
	}
}
