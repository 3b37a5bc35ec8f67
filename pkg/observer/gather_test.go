package observer

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Owners that request objects of a kind one after the other all use its first list: none of
// them reads its object separately.
func TestFirstListWaitsForAllWhoAsk(t *testing.T) {
	f := newFixture(t)
	f.informers.gatherPause = 300 * time.Millisecond
	const many = 10
	var owners []Owner
	for i := range many {
		owners = append(owners, Owner{Namespace: "demo", Name: fmt.Sprint("owner-", i)})
		f.create(t, owners[i].Name)
	}
	for _, owner := range owners {
		pause(t, 100*time.Millisecond)
		for _, known := range f.Observe(owner, []Target{f.target(owner.Name)}) {
			if !errors.Is(known.Err, ErrNotSynced) {
				t.Fatalf("%s: there is a list already: %+v", owner, known)
			}
		}
	}
	for _, owner := range owners {
		if known := f.observe(t, owner, f.target(owner.Name))[0]; known.Stale || !known.Exists() {
			t.Errorf("%s: known is %+v", owner, known)
		}
	}
}

// The first list waits for owners who have not had their turn to request anything.
func TestFirstListWaitsForACrowd(t *testing.T) {
	var crowded atomic.Bool
	crowded.Store(true)
	f := newFixture(t, func(options *Options, _ *rest.Config) { options.Crowded = crowded.Load })
	f.create(t, "first")
	f.create(t, "last")
	first, last := Owner{Namespace: "demo", Name: "first"}, Owner{Namespace: "demo", Name: "last"}
	f.Observe(first, []Target{f.target("first")})
	pause(t, 10*gatherPause)
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

// Repeated requests do not delay the first list without end.
func TestFirstListDoesNotWaitForEver(t *testing.T) {
	f := newFixture(t)
	f.informers.gatherPause, f.informers.longestGather = 300*time.Millisecond, 600*time.Millisecond
	f.create(t, "web")
	came := 0
	kit.Eventually(t, func() string {
		came++
		f.Observe(Owner{Namespace: "demo", Name: fmt.Sprint("owner-", came)}, []Target{f.target("none")})
		if known := f.Observe(web, []Target{f.target("web")})[0]; !known.Exists() {
			return fmt.Sprintf("not known after %d have come: %+v", came, known)
		}
		return ""
	})
}

// pause advances the time.
func pause(t *testing.T, long time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(long):
	}
}
