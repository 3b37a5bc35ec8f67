package hub

import "testing"

// A replica is ready when it knows the Applications.
func TestReady(t *testing.T) {
	known := &Known{}
	if known.Check(nil) == nil {
		t.Error("it is ready and knows nothing")
	}
	known.synced.Store(true)
	check.Must(t, known.Check(nil))
}
