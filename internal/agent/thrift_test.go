package agent

import (
	"slices"
	"testing"
)

// TestThrift: memory is released once after each work that used enough of it, and not during
// the work.
func TestThrift(t *testing.T) {
	const mebibyte = 1 << 20
	var now uint64
	given := 0
	thrift := &thrift{allocated: func() uint64 { return now }, giveBack: func() { given++ }}
	var after []int
	for _, work := range []uint64{100 * mebibyte, 50 * mebibyte, 1000, 1000, 15 * mebibyte, 1000, mebibyte, 1000, 1000} {
		now += work
		thrift.look()
		after = append(after, given)
	}
	if want := []int{0, 0, 1, 1, 1, 1, 1, 2, 2}; !slices.Equal(after, want) {
		t.Errorf("given back %v, want %v", after, want)
	}
}

// TestAllocated: the runtime has a metric of this name.
func TestAllocated(t *testing.T) {
	before := allocated()
	kept = make([]byte, 1<<20)
	if more := allocated() - before; before == 0 || more < uint64(len(kept)) {
		t.Errorf("%d more than %d after a mebibyte", more, before)
	}
}

var kept []byte
