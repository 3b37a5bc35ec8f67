package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// queue makes the passes over an Application as an agent does: one after each event, and one
// when the pass before has asked for it.
type queue struct {
	*world

	due time.Time // zero: the last pass has asked for none
}

// pass makes the pass of an event at a time, and before it those that are due until then.
func (q *queue) pass(t *testing.T, at time.Time) {
	t.Helper()
	q.runUntil(t, at)
	q.runAt(t, at)
}

// runUntil makes the passes that are due until a time, and none for an event.
func (q *queue) runUntil(t *testing.T, end time.Time) {
	t.Helper()
	for !q.due.IsZero() && !q.due.After(end) {
		q.runAt(t, q.due)
	}
}

func (q *queue) runAt(t *testing.T, at time.Time) {
	t.Helper()
	q.step = at.Sub(q.now)
	result, err := q.reconcile(t)
	check.Must(t, err)
	q.due = time.Time{}
	if result.RequeueAfter > 0 {
		q.due = q.now.Add(result.RequeueAfter)
	}
}

// report has the controller of the Deployment web report how many Pods of 20 it has replaced.
func (q *queue) report(t *testing.T, replaced int64) {
	t.Helper()
	q.change(t, "Deployment web", func(live *unstructured.Unstructured) {
		live.Object["status"] = map[string]any{
			"observedGeneration": int64(2), "replicas": int64(20), "updatedReplicas": replaced,
			"readyReplicas": int64(20), "availableReplicas": int64(20),
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
		}
	})
}

// rollingOut is an Application at rest whose user has just chosen another image, and the pass
// that has patched the Deployment.
func rollingOut(t *testing.T) *queue {
	t.Helper()
	const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 20, template: {spec: {containers: [{name: main, image: "main:%d"}]}}}}`
	w := running(t, fmt.Sprintf(web, 1), "")
	q := &queue{world: w}
	q.pass(t, w.now.Add(time.Hour))
	w.answer = func(live map[string]any) {
		writes(int64(2), "metadata", "generation")(live)
		writes(int64(1), "status", "observedGeneration")(live)
	}
	w.respec(fmt.Sprintf(web, 2), "")
	w.forget()
	q.pass(t, w.now.Add(time.Hour))
	w.checkState(t, application.StateDegraded)
	w.checkReason(t, application.ReadyCondition, "InProgress")
	return q
}

// A rollout reports its progress again and again: the hub gets its begin, its end, and one
// text in between.
func TestARolloutIsThreeWrites(t *testing.T) {
	q := rollingOut(t)
	const reports, long = 20, 26 * time.Second
	for i := range reports {
		q.runUntil(t, q.now.Add(long/reports))
		q.report(t, int64(i+1))
		q.pass(t, q.now.Add(long/reports))
	}
	q.runUntil(t, q.now.Add(time.Second))
	q.checkReady(t, application.StateRunning, "Ready", ready)
	if count := len(q.callsOf("Write")); count > 3 {
		t.Errorf("%d writes: %q", count, q.callsOf("Write"))
	}
	check.Equal(t, "a pass is due", time.Time{}, q.due)
}

// The last text arrives though nothing happens after it, and a restarted agent writes it too.
func TestTheLastTextOfARolloutIsWritten(t *testing.T) {
	for name, then := range map[string]func(q *queue){
		"in its turn":     func(q *queue) { q.runUntil(t, q.now.Add(time.Minute)) },
		"after a restart": func(q *queue) { q.restart(); q.pass(t, q.now.Add(time.Second)) },
	} {
		t.Run(name, func(t *testing.T) {
			q := rollingOut(t)
			for i := range 10 { // and no more: the rollout is stuck
				q.report(t, int64(i+1))
				q.pass(t, q.now.Add(time.Second))
			}
			check.Equal(t, "is stored", false, strings.Contains(q.cm.Data[application.StatusKey], "Updated: 10/20"))
			then(q)
			q.checkReady(t, application.StateDegraded, "InProgress", "apps/v1 Deployment demo/web: InProgress: Updated: 10/20")
			check.Equal(t, "a pass is due", time.Time{}, q.due)
		})
	}
}
