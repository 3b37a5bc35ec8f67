package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

const (
	jobWithTTL = `{apiVersion: batch/v1, kind: Job, metadata: {name: load}, spec: {ttlSecondsAfterFinished: 60, template: {spec: {a: 1}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "1"}}
`
	jobWithoutTTL = `{apiVersion: batch/v1, kind: Job, metadata: {name: load}, spec: {template: {spec: {a: 1}}}}`
)

// finish sets the condition of a finished Job, as its controller does.
func (w *world) finish(t *testing.T, condition string) {
	t.Helper()
	w.change(t, "Job load", func(live *unstructured.Unstructured) {
		live.Object["status"] = map[string]any{"succeeded": int64(1), "conditions": []any{map[string]any{"type": condition, "status": "True"}}}
	})
}

// settle makes passes until no write is due.
func (w *world) settle(t *testing.T) {
	t.Helper()
	for range 10 {
		result, err := w.reconcile(t)
		check.Must(t, err)
		if result.RequeueAfter == 0 {
			return
		}
	}
	t.Error("it does not settle")
}

// checkRuns makes passes until no write is due, and compares whether they create the Job.
func (w *world) checkRuns(t *testing.T, why string, want bool) {
	t.Helper()
	w.forget()
	w.settle(t)
	check.Equal(t, why+": the Job runs again", want, slices.Contains(w.calls, "Create Job load"))
}

// A Job that has completed and that its TTL deletes is done, for a restarted agent, too. It runs again when its
// manifest changes, and not when another part of the Application does.
func TestAJobThatItsTTLDeletesIsDone(t *testing.T) {
	w := running(t, jobWithTTL, "")
	w.finish(t, "Complete")
	w.settle(t)
	w.checkState(t, application.StateCompleted)

	isDone := func(why string) {
		t.Helper()
		w.checkRuns(t, why, false)
		w.checkReady(t, application.StateCompleted, "Ready", ready)
		w.checkCondition(t, application.ReconciledCondition, "Reconciled", "all objects match the Application")
		check.Equal(t, why, []application.Drift(nil), w.app(t).Status.Drifts)
	}
	w.change(t, "Job load", func(live *unstructured.Unstructured) {
		live.SetDeletionTimestamp(&metav1.Time{Time: noon})
		live.SetFinalizers([]string{"foregroundDeletion"})
	})
	isDone("the TTL deletes it")
	w.remove("Job load")
	isDone("it is gone")
	w.checkQuiet(t)
	w.checkReports(t)
	w.restart()
	clear(w.gone)
	isDone("the agent was restarted")
	w.respec(strings.Replace(jobWithTTL, `a: "1"`, `a: "2"`, 1), "")
	isDone("another object has changed")
	w.respec(strings.Replace(jobWithTTL, "a: 1}", "a: 2}", 1), "")
	w.checkRuns(t, "a new manifest", true)
	check.Equal(t, "the record", (*application.Ended)(nil), w.app(t).Status.Objects[0].Ended)
}

// The agent may see only that a Job is gone: its last version had finished. It is not run again, nor is one that has failed.
func TestAJobMayFinishAndVanishAtOnce(t *testing.T) {
	for condition, c := range map[string]struct {
		state           application.State
		reason, message string
	}{
		"Complete": {application.StateCompleted, "Ready", ready},
		"Failed": {application.StateFailed, "Unhealthy",
			"batch/v1 Job demo/load: Failed: it has failed, and its TTL deletes it: change its manifest to run it again"},
	} {
		t.Run(condition, func(t *testing.T) {
			w := running(t, jobWithTTL, "")
			w.finish(t, condition)
			w.remove("Job load")
			for range 2 {
				w.checkRuns(t, "it has ended", false)
				w.checkReady(t, c.state, c.reason, c.message)
				w.restart()
				clear(w.gone)
			}
		})
	}
}

// What has not finished, or has no TTL, is drift when another client deletes it.
func TestAJobThatWasDeletedIsCreatedAgain(t *testing.T) {
	for _, c := range []struct {
		why, manifest string
		set           func(t *testing.T, w *world)
	}{
		{"while it runs", jobWithTTL, func(t *testing.T, w *world) {
			w.change(t, "Job load", func(live *unstructured.Unstructured) { live.Object["status"] = map[string]any{"active": int64(1)} })
		}},
		{"after it has completed, without a TTL", jobWithoutTTL, func(t *testing.T, w *world) { w.finish(t, "Complete") }},
	} {
		t.Run(c.why, func(t *testing.T) {
			w := running(t, c.manifest, "")
			c.set(t, w)
			w.settle(t)
			w.remove("Job load")
			w.checkRuns(t, "it was deleted", true)
		})
	}
}

// A manifest that a finished Job was not made of has not run: it runs when the Job is gone.
func TestARefusedManifestRunsWhenTheFormerJobIsGone(t *testing.T) {
	w := running(t, jobWithTTL, "")
	w.finish(t, "Complete")
	w.settle(t)
	w.admit = func(before, after map[string]any) error {
		if before != nil && after != nil {
			return invalid()
		}
		return nil
	}
	w.respec(strings.Replace(jobWithTTL, "a: 1}", "a: 2}", 1), "")
	w.mustPass(t)
	w.remove("Job load")
	w.checkRuns(t, "a new manifest", true)
}
