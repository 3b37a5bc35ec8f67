package admission

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// The replicas are restarted one after the other, as by a rolling update, under
// constant load: not one admission fails.
func TestRollingRestart(t *testing.T) {
	kit.Long(t, "replicas are replaced under load")
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	var dryRuns tally
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		parallel(8, func(worker int) { admitDryRuns(ctx, t, &dryRuns, namespace, worker) })
	})
	for restart := range 4 {
		before := dryRuns.len()
		if err := errors.Join(installed.StopWebhook(restart%2), installed.StartWebhook(t.Context())); err != nil {
			t.Error(err)
		}
		kit.EventuallyTrue(t, "there is no load", func() bool { return dryRuns.len() >= before+50 })
	}
	stop()
	load.Wait()
	dryRuns.check(t, "admissions during restarts")
}
