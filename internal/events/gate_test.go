package events

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
)

// Few Events are written one after the other. Of many, more are written at the same time, so that they
// do not pile up.
func TestGate(t *testing.T) {
	const writing = 10 * time.Millisecond
	for _, test := range []struct {
		events, atOnce int
		// within is how long all take, in single writes.
		within int
	}{
		{1, 1, 1},
		{crowd - 1, 1, crowd - 1},
		{10 * crowd, 10, 340},
		{100 * crowd, 100, 600},
	} {
		t.Run(fmt.Sprint(test.events), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g gate
				var mu sync.Mutex
				running, most := 0, 0
				count := func(more int) {
					mu.Lock()
					defer mu.Unlock()
					running += more
					most = max(most, running)
				}
				var all sync.WaitGroup
				began := time.Now()
				for range test.events {
					all.Go(func() {
						defer g.enter()()
						count(1)
						defer count(-1)
						<-time.After(writing)
					})
				}
				all.Wait()
				check.Equal(t, "at the same time", test.atOnce, most)
				if took := time.Since(began) / writing; int(took) > test.within {
					t.Errorf("it takes as long as %d writes, want at most %d", took, test.within)
				}
			})
		})
	}
}
