package hub

import (
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

// A replica is ready when it knows the Applications.
func TestReady(t *testing.T) {
	known := &Known{}
	if known.Check(nil) == nil {
		t.Error("it is ready and knows nothing")
	}
	known.synced.Store(true)
	check.Must(t, known.Check(nil))
}
