package admission

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/kit"
)

// tally counts the outcomes of many requests, of several workers.
type tally struct {
	mu       sync.Mutex
	requests int
	longest  time.Duration
	failures []error
}

// count calls do, and records its outcome.
func (a *tally) count(do func() error) {
	started := time.Now()
	err := do()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests++
	a.longest = max(a.longest, time.Since(started))
	if err != nil {
		a.failures = append(a.failures, err)
	}
}

func (a *tally) len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests
}

// check fails, under a name, if a request has failed.
func (a *tally) check(t *testing.T, name string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Logf("%s: %d, the longest took %s", name, a.requests, a.longest.Round(time.Millisecond))
	if len(a.failures) > 0 {
		t.Errorf("%s: %d of %d failed; the first: %v", name, len(a.failures), a.requests, a.failures[0])
	}
}

// parallel runs the workers and returns when all have ended.
func parallel(workers int, work func(worker int)) {
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() { work(worker) })
	}
	all.Wait()
}

// writePlain creates, updates, patches and deletes ConfigMaps that are no Applications:
// four writes for each round, as low, who may do nothing else.
func writePlain(t *testing.T, writes *tally, namespace string, workers, rounds int) {
	t.Helper()
	client := low.client(t).CoreV1().ConfigMaps(namespace)
	parallel(workers, func(worker int) {
		for round := range rounds {
			// Half of them have annotations, so that a condition that fails for either
			// half would show.
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("plain-%d-%d", worker, round)}}
			if round%2 == 0 {
				cm.Annotations = map[string]string{"example.com/note": "x"}
				cm.Data = map[string]string{"a": "1"}
			}
			writes.count(func() error { return kit.ErrorOf(client.Create(t.Context(), cm, metav1.CreateOptions{})) })
			cm.Data = map[string]string{"a": "2"}
			writes.count(func() error { return kit.ErrorOf(client.Update(t.Context(), cm, metav1.UpdateOptions{})) })
			writes.count(func() error {
				return kit.ErrorOf(client.Patch(t.Context(), cm.Name, types.MergePatchType, []byte(`{"data": {"a": "3"}}`), metav1.PatchOptions{}))
			})
			writes.count(func() error { return client.Delete(t.Context(), cm.Name, metav1.DeleteOptions{}) })
		}
	})
}

// during runs work in the background while do runs, repeatedly until do has ended, and
// at least once.
func during(ctx context.Context, work func(ctx context.Context), do func()) {
	ctx, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() {
		for {
			work(context.WithoutCancel(ctx))
			if ctx.Err() != nil {
				return
			}
		}
	})
	do()
	stop()
	background.Wait()
}
