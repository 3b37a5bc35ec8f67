package limit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
)

// A client with many requests does not delay one with a single request.
func TestTurnsOfSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := newFairQueue(1)
		check.Must(t, places.take(t.Context(), "somebody"))
		var served []string
		var all sync.WaitGroup
		ask := func(sender, what string) {
			all.Go(func() {
				if err := places.take(t.Context(), sender); err != nil {
					t.Error(err)
				}
				served = append(served, what)
				places.give()
			})
			synctest.Wait()
		}
		for i := range 4 {
			ask("often", fmt.Sprintf("often %d", i))
		}
		ask("twice", "twice 0")
		ask("once", "once 0")
		ask("twice", "twice 1")
		places.give()
		all.Wait()
		want := []string{"often 0", "twice 0", "once 0", "often 1", "twice 1", "often 2", "often 3"}
		check.Equal(t, "served", want, served)
		if places.free != 1 || len(places.waiting) > 0 || len(places.next) > 0 {
			t.Errorf("left: %+v", places)
		}
	})
}

// Clients that give up at any time neither lose nor add places.
func TestTurnsOfThoseWhoGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 3
		places := newFairQueue(many)
		var all sync.WaitGroup
		var mu sync.Mutex
		var served, late, working int
		for i := range 1000 {
			all.Go(func() {
				<-time.After(time.Duration(i%7) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%11)*time.Millisecond)
				defer cancel()
				err := places.take(ctx, fmt.Sprint(i%5))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					late++
					return
				}
				if served, working = served+1, working+1; working > many {
					t.Errorf("%d at once, want %d at most", working, many)
				}
				mu.Unlock()
				<-time.After(time.Millisecond)
				mu.Lock()
				working--
				places.give()
			})
		}
		all.Wait()
		if served == 0 || late == 0 {
			t.Errorf("%d were served and %d gave up: nothing is shown", served, late)
		}
		if places.free != many || len(places.waiting) > 0 || len(places.next) > 0 {
			t.Errorf("left: %d places, want %d; %v %v", places.free, many, places.waiting, places.next)
		}
	})
}
