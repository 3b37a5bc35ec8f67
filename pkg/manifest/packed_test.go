package manifest_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// An object that was never seen packs to nil, and unpacks to nil.
func TestNothingIsPackedToNothing(t *testing.T) {
	if packed := manifest.Pack(nil); packed != nil {
		t.Errorf("packed: %v", packed)
	}
	if fields := manifest.Packed(nil).Fields(); fields != nil {
		t.Errorf("fields: %v", fields)
	}
}
