package faults

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The API server does not answer the writes of many new Applications. They occupy half of the agent's
// eight workers, and an older Application is repaired meanwhile. Then all of them are carried out.
func TestRepairsDoNotWaitForNewApplications(t *testing.T) {
	kit.Long(t, "it waits for workers that never come")
	t.Parallel()
	l := newLane(t, "newcomers")
	old := l.newApps(1)
	kit.Must(t, creates("configmap one")(t.Context(), old[0]))
	kit.Must(t, l.await(t.Context(), standing(old)))

	var held atomic.Int64
	answered := make(chan struct{})
	l.intercept(func(call proxy.Call) *proxy.Fault {
		if call.Verb != "create" || call.Resource != "services" {
			return nil
		}
		return &proxy.Fault{Before: func() {
			held.Add(1)
			<-answered
		}}
	})
	newcomers := l.newApps(12)
	err := each(newcomers, func(a *app) error { return creates("service 80")(t.Context(), a) })
	if err == nil {
		err = sleep(t.Context(), 3*time.Second) // for all workers to take one, if they do
	}
	if err == nil {
		err = drifts("configmap theirs")(t.Context(), old[0])
	}
	if err == nil {
		err = eventually(t.Context(), standing(old))
	}
	check.Equal(t, "writes of new Applications meanwhile", 4, held.Load())
	close(answered)
	kit.Must(t, err)
	kit.Must(t, eventually(t.Context(), standing(newcomers)))
}
