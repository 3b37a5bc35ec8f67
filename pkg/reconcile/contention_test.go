package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

const contendedText = "v1 ConfigMap demo/config: data.a is changed again and again by rival: leave data.a out of the observer schema to allow that"

// flip changes the field as a competing writer, each time to another value.
func (w *world) flip(t *testing.T, rival string) {
	t.Helper()
	w.somebody(t, rival, "ConfigMap config", fmt.Sprint("theirs at ", w.now), "data", "a")
}

// vanish deletes the object as another client, if it exists.
func (w *world) vanish(name string) {
	delete(w.objects, name)
	w.gone[name] = true
}

// contend lets the competing writer win at each pass for this long. It returns the times of the loop's
// writes to the target, since the beginning.
func (w *world) contend(t *testing.T, long time.Duration, wins func()) (written []time.Duration) {
	t.Helper()
	begin := w.now
	for w.now.Sub(begin) < long {
		wins()
		w.mustPass(t)
		for range w.touches() {
			written = append(written, w.now.Sub(begin))
		}
	}
	return written
}

// If a client changes the same field again and again, a few repairs follow at once, then fewer
// and fewer, but they never stop.
func TestFight(t *testing.T) {
	cases := []struct {
		name string
		long time.Duration
		wins func(t *testing.T, w *world)
		told string // a part of the message
	}{
		{"over a field", 10 * time.Minute, func(t *testing.T, w *world) { w.flip(t, "rival") }, "data.a is changed again and again by rival"},
		{"over the object", time.Minute, func(_ *testing.T, w *world) { w.vanish("ConfigMap config") },
			"v1 ConfigMap demo/config: another client deletes the object again and again: leave it out of the manifest to stop creating it"},
		{"over a mark", time.Minute, func(t *testing.T, w *world) {
			w.somebody(t, "rival", "ConfigMap config", "x", "metadata", "labels", application.OwnedByLabel)
		}, "is changed again and again by rival"},
		{"by removal, which leaves no trace", time.Minute, func(_ *testing.T, w *world) { delete(w.objects["ConfigMap config"], "data") },
			"data is changed again and again"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, oneObject, "")
			w.step = time.Second
			written := w.contend(t, c.long, func() { c.wins(t, w) })
			pauses := make([]int, 0, len(written))
			for i := 1; i < len(written); i++ {
				pauses = append(pauses, int((written[i]-written[i-1])/time.Second))
			}
			// The first five repairs are as fast as the competing writer.
			want := []int{1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60, 60}
			check.Equal(t, "pauses in seconds", want[:min(len(pauses), len(want))], pauses)
			inFive := slices.IndexFunc(written, func(at time.Duration) bool { return at > 5*time.Minute })
			checkRange(t, "writes in 5 minutes, or -1 if it was shorter", -1, 14, inFive)
			checkRange(t, "writes, as it never gives up", 10, 20, len(written))
			contended := meta.FindStatusCondition(w.app(t).Status.Conditions, application.ContendedCondition)
			if contended.Reason != "CompetingWriter" || !strings.Contains(contended.Message, c.told) {
				t.Errorf("the condition is %+v, want %q", contended, c.told)
			}
		})
	}
}

// A client can invent names: one that uses another name each time causes a few more immediate
// repairs, and then no more.
func TestFightUnderManyNames(t *testing.T) {
	w := running(t, oneObject, "")
	w.step = time.Second
	names := 0
	written := w.contend(t, 10*time.Minute, func() {
		names++
		w.flip(t, fmt.Sprintf("rival-%d", names))
	})
	checkRange(t, "writes in 10 minutes, the 15 fast ones and about one per minute", 16, 30, len(written))
	w.checkReason(t, application.ContendedCondition, "CompetingWriter")
}

// The condition names the competing writer, the field, and the way out. The loop runs again when a pause
// ends, and when the contention is forgotten.
func TestFightIsTold(t *testing.T) {
	w := running(t, oneObject, "")
	w.checkCondition(t, application.ContendedCondition, "NoCompetingWriter", "")
	for range 5 {
		w.checkReason(t, application.ContendedCondition, "NoCompetingWriter")
		w.flip(t, "rival")
		w.checkPass(t, "Patch ConfigMap config replace /data/a")
	}
	w.checkCondition(t, application.ContendedCondition, "CompetingWriter", contendedText)
	w.checkReason(t, application.ReconciledCondition, "Reconciled") // Reconciled for now
	check.Equal(t, "report", "Contended v1 ConfigMap demo/config; left unchanged: "+strings.TrimPrefix(contendedText, "v1 ConfigMap demo/config: "),
		w.reports[len(w.reports)-1])

	w.flip(t, "rival")
	w.checkAfter(t, 400*time.Millisecond, 600*time.Millisecond) // a pause of one second
	w.checkTouches(t)
	w.checkReports(t, "DriftDetected v1 ConfigMap demo/config: data.a, changed by rival (Update at 2026-01-02T12:00:12Z); left unchanged: Contended")

	w.checkAfter(t, 600*time.Millisecond, 10*time.Minute)
	w.checkTouches(t, "Patch ConfigMap config replace /data/a")

	w.checkAfter(t, 10*time.Minute, 0)
	w.checkTouches(t)
	w.checkCondition(t, application.ContendedCondition, "NoCompetingWriter", "")

	w.step = time.Second
	check.Equal(t, "writes after a peace, as many as at first", 6, len(w.contend(t, 7*time.Second, func() { w.flip(t, "rival") })))
}

// While contention pauses the repairs of an object, the conditions report it.
func TestContendedConditions(t *testing.T) {
	w := running(t, oneObject, "")
	w.step = time.Second
	w.contend(t, 19*time.Second, func() { w.flip(t, "rival") })
	w.checkReady(t, application.StateRunning, "Contended", "v1 ConfigMap demo/config: data.a")
	w.checkCondition(t, application.ReconciledCondition, "Contended", "v1 ConfigMap demo/config: data.a")
	w.checkCondition(t, application.DriftedCondition, "Contended", "v1 ConfigMap demo/config: data.a")
	w.checkReason(t, application.StalledCondition, "Progressing")
}

// Contention over one object does not affect others, nor the changes by another manager: they are
// repaired at once. Each contention is reported once.
func TestFightsAreApart(t *testing.T) {
	w := running(t, twoObjects, "")
	w.step = time.Second
	var told []string
	w.contend(t, 30*time.Second, func() {
		w.flip(t, "rival")
		told = append(told, w.reports...)
	})
	w.flip(t, "rival")
	w.somebody(t, "hpa", "Deployment web", int64(5), "spec", "replicas")
	w.checkPass(t, "Patch Deployment web replace /spec/replicas")

	w.contend(t, 30*time.Second, func() {
		w.flip(t, "rival")
		w.somebody(t, "hpa", "Deployment web", int64(5), "spec", "replicas")
		told = append(told, w.reports...)
	})
	told = slices.DeleteFunc(told, func(report string) bool { return !strings.HasPrefix(report, "Contended") })
	want := []string{
		"Contended v1 ConfigMap demo/config; left unchanged: " + strings.TrimPrefix(contendedText, "v1 ConfigMap demo/config: "),
		"Contended apps/v1 Deployment demo/web; left unchanged: spec.replicas is changed again and again by hpa: leave spec.replicas out of the observer schema to allow that",
	}
	check.Equal(t, "told of contention", want, told)
	w.flip(t, "kubectl-edit")
	w.checkPass(t, "Patch ConfigMap config replace /data/a")
}

// A repair that the API server refuses is no contention, and costs one request. The events of a
// client that keeps changing the object do not set the pace.
func TestAForbiddenRepairIsNotTriedAtEachEvent(t *testing.T) {
	w := running(t, oneObject, "")
	w.step = time.Second
	w.failures["Patch ConfigMap config replace /data/a"] = apierrors.NewForbidden(resource, "config", errors.New("no"))
	begin, tries := w.now, 0
	for w.now.Sub(begin) < 10*time.Minute {
		w.flip(t, "rival")
		_, _ = w.pass(t) // the passes that tried return the error
		tries += len(w.touches())
	}
	checkRange(t, "tries in 10 minutes", 10, 20, tries)
	w.checkReason(t, application.ReconciledCondition, "Forbidden")
	clear(w.failures)
	w.after(t, time.Minute)
	w.checkReason(t, application.ReconciledCondition, "Reconciled")
}

// If the API server contradicts itself about an object's existence, the agent does not ask
// without end.
func TestNeitherThereNorMissing(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.failures["Create ConfigMap config"] = apierrors.NewAlreadyExists(resource, "config")
	w.mustPass(t)
	checkRange(t, "writes to the target", 0, 4, len(w.touches()))
	w.checkReason(t, application.ReconciledCondition, "Error")
}
