package manifest_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// An object that was never seen packs to nil, and unpacks to nil.
func TestNothingIsPackedToNothing(t *testing.T) {
	check.Equal(t, "packed", nil, manifest.Pack(nil))
	check.Equal(t, "unpacked", nil, manifest.Packed(nil).Fields())
}
