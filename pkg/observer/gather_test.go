package observer

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// The first list waits for owners who have not had their turn to request anything.
func TestFirstListWaitsForACrowd(t *testing.T) {
	var crowded atomic.Bool
	crowded.Store(true)
	f := newFixture(t, func(options *Options, _ *rest.Config) { options.Crowded = crowded.Load })
	f.create(t, "first")
	f.create(t, "last")
	first, last := Owner{Namespace: "demo", Name: "first"}, Owner{Namespace: "demo", Name: "last"}
	f.Observe(first, []Target{f.target("first")})
	<-time.After(10 * gatherPause)
	if known := f.Observe(last, []Target{f.target("last")})[0]; !errors.Is(known.Err, ErrNotSynced) {
		t.Fatalf("there is a list already: %+v", known)
	}
	crowded.Store(false)
	for _, owner := range []Owner{first, last} {
		if known := f.observe(t, owner, f.target(owner.Name))[0]; known.Stale || !known.Exists() {
			t.Errorf("%s: known is %+v", owner, known)
		}
	}
}

// A crowd that never ends does not delay the first list without end.
func TestFirstListDoesNotWaitForACrowdForEver(t *testing.T) {
	f := newFixture(t, func(options *Options, _ *rest.Config) { options.Crowded = func() bool { return true } })
	f.informers.longestCrowd = 300 * time.Millisecond
	f.create(t, "web")
	if known := f.observe(t, web, f.target("web"))[0]; known.Stale || !known.Exists() {
		t.Errorf("known is %+v", known)
	}
}
