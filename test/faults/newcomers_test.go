package faults

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The API server does not answer the writes of many new Applications, or refuses them after a second each time.
// They occupy half of the agent's eight workers, and an older Application is repaired meanwhile. Then all of them are
// carried out.
func TestRepairsDoNotWaitForNewApplications(t *testing.T) {
	const half = int64(4) // of the agent's workers
	for name, test := range map[string]struct {
		patience time.Duration
		// fault lets the API server answer after a call of hold.
		fault func(hold func()) *proxy.Fault
	}{
		"unanswered": {
			time.Hour,
			func(hold func()) *proxy.Fault { return &proxy.Fault{Before: hold} },
		},
		"refused": {
			time.Second,
			func(hold func()) *proxy.Fault {
				return &proxy.Fault{Do: hold, Answer: http.StatusInternalServerError}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Long(t, "it waits for workers that never come")
			t.Parallel()
			l := newLane(t, "newcomers-"+name)
			old := l.newApps(1)
			kit.Must(t, creates("configmap one")(t.Context(), old[0]))
			kit.Must(t, l.await(t.Context(), standing(old)))

			var held, most atomic.Int64
			answered := make(chan struct{})
			hold := func() {
				now := held.Add(1)
				defer held.Add(-1)
				seen := most.Load()
				for now > seen && !most.CompareAndSwap(seen, now) {
					seen = most.Load()
				}
				select {
				case <-answered:
				case <-time.After(test.patience):
				}
			}
			l.intercept(func(call proxy.Call) *proxy.Fault {
				if call.Verb != "create" || call.Resource != "services" {
					return nil
				}
				return test.fault(hold)
			})
			newcomers := l.newApps(12)
			err := each(newcomers, func(a *app) error { return creates("service 80")(t.Context(), a) })
			if err == nil {
				err = eventually(t.Context(), func(context.Context) error {
					if now := most.Load(); now < half {
						return fmt.Errorf("%d writes of new Applications at the same time", now)
					}
					return nil
				})
			}
			if err == nil {
				err = sleep(t.Context(), 2*time.Second) // for other workers to take one, if they do
			}
			if err == nil {
				err = drifts("configmap theirs")(t.Context(), old[0])
			}
			if err == nil {
				err = eventually(t.Context(), standing(old))
			}
			check.Equal(t, "writes of new Applications at the same time", half, most.Load())
			l.intercept(nil)
			close(answered)
			kit.Must(t, err)
			kit.Must(t, eventually(t.Context(), standing(newcomers)))
		})
	}
}
