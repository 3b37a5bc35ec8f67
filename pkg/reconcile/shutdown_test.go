package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/test/check"
)

// caller records the Services that receive a shutdown request.
type caller struct {
	calls  []string
	answer error
}

func (c *caller) Call(_ context.Context, service manifest.Ref, port int32) error {
	c.calls = append(c.calls, fmt.Sprintf("%s/%s:%d", service.Namespace, service.Name, port))
	return c.answer
}

// refused is the answer of a Service whose Pods do not listen.
func refused() error {
	return fmt.Errorf("PUT http://shutdown.demo.svc:8080/shutdown: %w", errSilent)
}

// grace is the longest duration of an attempt, before its end is rounded up.
const grace = 30 * time.Second

// stopping returns an Application with a shutdown hook, and its caller.
func stopping(t *testing.T) (*world, *caller) {
	t.Helper()
	w, c := hookedRunning(t, "shutdown"), &caller{}
	w.Shutdowns, w.ShutdownDefaults = c, reconcile.ShutdownDefaults{GraceTime: grace, Strategy: application.GiveUpShutdown}
	return w, c
}

// here returns the Application as the agent reads it.
func (w *world) here(t *testing.T) *application.Application {
	t.Helper()
	app, err := application.ReadFor(w.cm, w.ClusterName)
	check.Must(t, err)
	return app
}

// confirm sets the Application's proof that it has shut down.
func (w *world) confirm(t *testing.T) {
	t.Helper()
	_, err := w.ConfirmShutdown(t.Context(), w.here(t))
	check.Fails(t, "confirmation", err, "")
}

// after makes passes, each this long after the one before, and returns when the next one is
// due.
func (w *world) after(t *testing.T, steps ...time.Duration) (due time.Duration) {
	t.Helper()
	step := w.step
	defer func() { w.step = step }()
	for _, d := range steps {
		w.step = d
		due = w.mustPass(t)
	}
	return due
}

// checkAfter makes a pass this long after the last one, and compares when the next one is due.
func (w *world) checkAfter(t *testing.T, d, want time.Duration) {
	t.Helper()
	check.Equal(t, "the next pass is due after", want, w.after(t, d))
}

func (w *world) record(t *testing.T) application.ShutdownRecord {
	t.Helper()
	if record := w.here(t).Hooks.Shutdown; record != nil {
		return *record
	}
	return application.ShutdownRecord{}
}

// checkKept checks that the finalizer is set exactly if the Application is to be kept.
func (w *world) checkKept(t *testing.T, kept bool) {
	t.Helper()
	check.Equal(t, "it has a finalizer", kept, len(w.cm.Finalizers) > 0)
}

// All courses of the shutdown of a deleted Application, and their ends. The time of an attempt ends 32 s after the pass before.
func TestShutdown(t *testing.T) {
	const waiting, degraded, gone = application.StateWaiting, application.StateDegraded, application.State("")
	for _, c := range []struct {
		name, steps string
		state       application.State
		calls       int
	}{
		{"it is asked, and has time", "1s", waiting, 1},
		{"it confirms", "1s confirm 1s", gone, 1},
		{"it confirms before it was asked, which is without effect", "confirm 1s", waiting, 1},
		{"it does not confirm, and is kept", "1s 32s 1h", degraded, 1},
		{"it confirms when the agent has given up", "1s 32s confirm 1s", gone, 1},
		{"it does not confirm, and is deleted all the same", "shutdown-failure-strategy=delete 1s 32s", gone, 1},
		{"the agent's strategy counts for who says none", "agent-deletes 1s 32s", gone, 1},
		{"it is asked twice more", "shutdown-retry-count=2 32s 32s 32s", waiting, 3},
		{"and not once again", "shutdown-retry-count=2 32s 32s 32s 32s 32s", degraded, 3},
		{"it has the time that it says", "shutdown-grace-time=2m 1s 32s", waiting, 1},
		{"a user has it asked once more", "1s 32s shutdown-retry=please 1s 1s", waiting, 2},
		{"it asks to be asked once more", "1s 32s retry 1s", waiting, 2},
		{"the hook is taken off while it has time", "1s hooks= 1s", gone, 1},
		{"its objects are let go of, and run on", "deletion-policy=orphan 1s", gone, 0},
		{"there is nothing to shut down", "vanish 1s", gone, 0},
		{"the workload is another one's by now", "disown 1s", gone, 0},
		{"what there was to shut down goes meanwhile", "1s vanish 1s", gone, 1},
		{"it is given up by force", "1s 32s give-up 1s", gone, 1},
		{"it is suspended: it is deleted all the same, and asked", "mode=suspend 1s", waiting, 1},
		{"the Service is not heard at first", "refuse" + strings.Repeat(" 1s", 10) + " answer 8s 8s", waiting, 5},
		{"the Service is never heard", "refuse" + strings.Repeat(" 1s", 40), degraded, 5},
		{"the agent was away for as long as it had", "crash 32s", waiting, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, called := stopping(t)
			before := len(w.objects)
			deleted(w)
			for step := range strings.FieldsSeq(c.steps) {
				w.play(t, called, step)
			}
			if len(called.calls) != c.calls || slices.ContainsFunc(called.calls, func(call string) bool { return call != "demo/shutdown:8080" }) {
				t.Errorf("called: %q, want %d times", called.calls, c.calls)
			}
			w.checkKept(t, c.state != gone)
			if c.state == gone {
				return
			}
			w.checkState(t, c.state)
			w.checkObjects(t, before)
			if attempt := w.record(t).Attempt; attempt > c.calls {
				t.Errorf("attempt %d, though it was called %d times", attempt, c.calls)
			}
			w.checkSilent(t, 3)
			w.checkNoCanary(t)
		})
	}
}

// play makes one step of a shutdown. A duration is a pass that long after the one before, and NAME=VALUE is an annotation that
// the user sets.
func (w *world) play(t *testing.T, c *caller, step string) {
	t.Helper()
	if name, value, ok := strings.Cut(step, "="); ok {
		w.annotate(application.Prefix+name, value)
		return
	}
	switch step {
	case "confirm":
		w.confirm(t)
	case "retry":
		if state, err := w.RetryShutdown(t.Context(), w.here(t)); state != application.StateWaiting || err != nil {
			t.Errorf("state %s, error %v", state, err)
		}
	case "agent-deletes":
		w.ShutdownDefaults.Strategy = application.DeleteAnyway
	case "vanish":
		delete(w.objects, "Deployment web")
	case "disown":
		disown(t, w, "Deployment web")
	case "give-up":
		application.GiveUp(w.cm, application.LocalCluster)
	case "refuse":
		c.answer = refused()
	case "answer":
		c.answer = nil
	case "crash":
		w.Shutdowns = dying{}
		w.passUntilCrash(t)
		w.Shutdowns = c
	default:
		w.after(t, sure(time.ParseDuration(step)))
	}
}

// dying is an agent that is killed before a call.
type dying struct{}

func (dying) Call(context.Context, manifest.Ref, int32) error { panic(crash{}) }

// passUntilCrash makes a pass. If the agent is killed in it, a new agent starts.
func (w *world) passUntilCrash(t *testing.T) {
	t.Helper()
	defer func() {
		if cause := recover(); cause != nil {
			if _, ok := cause.(crash); !ok {
				panic(cause)
			}
			w.restart()
		}
	}()
	_, err := w.reconcile(t)
	if err != nil && !apierrors.IsConflict(err) {
		t.Error(err)
	}
}

// obliging simulates Pods that confirm before they answer.
type obliging struct {
	*world
	t *testing.T
}

func (o obliging) Call(context.Context, manifest.Ref, int32) error {
	o.confirm(o.t)
	return nil
}

// A confirmation that arrives during the agent's call is not lost to the write that follows.
func TestConfirmedDuringTheCall(t *testing.T) {
	w, _ := stopping(t)
	w.Shutdowns = obliging{w, t}
	deleted(w)
	w.after(t, time.Second)
	check.Equal(t, "state", application.StateReady, w.record(t).State)
	w.after(t, time.Second)
	w.checkKept(t, false)
}

// The conditions of a shutdown, with the advice in each.
func TestWhatIsToldOfAShutdown(t *testing.T) {
	w, c := stopping(t)
	c.answer = refused()
	deleted(w)
	w.after(t, time.Second)
	const failure = "PUT http://shutdown.demo.svc:8080/shutdown: dial: connection refused"
	w.checkReady(t, application.StateWaiting, "ShuttingDown",
		"the Application is asked to shut down (attempt 1), and has until 2026-01-02T12:00:34Z to confirm that; a call has failed: "+failure)
	w.checkReason(t, application.StalledCondition, "Progressing")
	w.checkReports(t)

	w.after(t, grace+2*time.Second)
	const given = "the Application did not shut down, and is kept: ask again with a new value of krake.dev/shutdown-retry, " +
		"or remove shutdown from krake.dev/hooks: it has not confirmed within 30s: " + failure
	w.checkReady(t, application.StateDegraded, "ShutdownNotConfirmed", given)
	w.checkCondition(t, application.StalledCondition, "ShutdownNotConfirmed", given)
	w.checkReports(t, "ShutdownNotConfirmed v1 ConfigMap demo/app; left unchanged: it has not confirmed within 30s: "+failure)

	w.annotate(application.ShutdownRetryAnnotation, "1")
	c.answer = nil
	w.after(t, time.Second)
	w.checkReports(t, "ShutdownRequested v1 ConfigMap demo/app")
	w.forget()
	w.confirm(t)
	w.checkReady(t, application.StateReady, "ShutDown", "the Application has shut down")
	w.checkReports(t, "ShutdownConfirmed v1 ConfigMap demo/app")
}

// A Service that cannot be called is reported. Its objects stay, as if their shutdown were not
// confirmed.
func TestWhoCannotBeAsked(t *testing.T) {
	service := func(change func(spec map[string]any)) func(t *testing.T, w *world) {
		return func(t *testing.T, w *world) {
			w.change(t, "Service shutdown", func(live *unstructured.Unstructured) { change(live.Object["spec"].(map[string]any)) })
		}
	}
	cases := map[string]func(t *testing.T, w *world){
		"this agent calls no Services, as it was started without --hooks: have an administrator install the hooks (overlays/hooks)": func(_ *testing.T, w *world) { w.Shutdowns = nil },
		"the Service shutdown does not exist":           func(_ *testing.T, w *world) { delete(w.objects, "Service shutdown") },
		"the Service shutdown has no port: give it one": service(func(spec map[string]any) { delete(spec, "ports") }),
		"the Service shutdown does not select Pods of its namespace, and is not called: give it a selector": service(func(spec map[string]any) {
			spec["type"] = "ExternalName"
		}),
		"the Application has no Service called shutdown that could be asked: add one to its manifest, or remove shutdown from its annotation krake.dev/hooks": func(t *testing.T, w *world) {
			w.respec(strings.Replace(hookedObjects, "{name: shutdown}", "{name: other}", 1), "")
			w.after(t, time.Second)
		},
	}
	for want, set := range cases {
		w, c := stopping(t)
		set(t, w)
		deleted(w)
		w.after(t, time.Second, grace+2*time.Second)
		if message := w.record(t).Message; !strings.HasSuffix(message, ": "+want) || len(c.calls) > 0 {
			t.Errorf("message %q, want %q; called: %q", message, want, c.calls)
		}
		w.checkReason(t, application.ReadyCondition, "ShutdownNotConfirmed")
	}
	w, c := stopping(t)
	service(func(spec map[string]any) { delete(spec, "selector") })(t, w)
	deleted(w)
	w.after(t, time.Second)
	disown(t, w, "Service shutdown")
	w.after(t, 2*time.Second)
	check.Empty(t, "called", c.calls)
}

// While the target does not answer, the Application waits, and the condition reports it.
func TestShutdownOfASilentTarget(t *testing.T) {
	w, c := stopping(t)
	deleted(w)
	w.failures["Locate"] = errSilent
	w.forget()
	w.mustFail(t)
	w.checkReason(t, application.ReadyCondition, "TargetUnreachable")
	clear(w.failures)
	w.after(t, time.Second)
	_, err := w.Unreachable(t.Context(), ctrl.Request{NamespacedName: appName})
	check.Must(t, err)
	w.after(t, time.Second)
	w.checkReason(t, application.ReadyCondition, "ShuttingDown")
	w.checkState(t, application.StateWaiting)
	check.Equal(t, "calls", 1, len(c.calls))
}

// An Application whose work is complete is deleted at once, even with a shutdown hook.
func TestComplete(t *testing.T) {
	for _, hubIsBack := range []bool{true, false} {
		w, c := stopping(t)
		w.passWith(t, application.HooksAnnotation, "complete,shutdown")
		w.forget()
		if !hubIsBack {
			w.failures["Delete the Application"] = errSilent
			_, err := w.Complete(t.Context(), w.here(t))
			check.Fails(t, "completion", err, "connection refused")
			clear(w.failures)
			w.restart() // another report is not needed
			w.mustPass(t)
			w.checkCalls(t, "Delete the Application")
		} else if state, err := w.Complete(t.Context(), w.here(t)); state != application.StateReady || err != nil {
			t.Errorf("state %s, error %v", state, err)
		}
		w.mustPass(t)
		w.checkKept(t, false)
		check.Empty(t, "called", c.calls)
	}
}

// A report of completion does not count after the hook was removed.
func TestCompletedOfAHookThatWasTakenOff(t *testing.T) {
	w := hookedRunning(t, "complete")
	w.failures["Delete the Application"] = errors.New("no")
	_, err := w.Complete(t.Context(), w.here(t))
	check.Fails(t, "completion", err, "no")
	clear(w.failures)
	w.passWith(t, application.HooksAnnotation, "")
	w.passWith(t, application.HooksAnnotation, "complete")
	check.Equal(t, "it is deleted, or to be", false, w.cm.DeletionTimestamp != nil || w.here(t).Hooks.Completed)
}

// A report from a former cluster does not count.
func TestCompleteOnAFormerCluster(t *testing.T) {
	w := hookedRunning(t, "complete")
	w.travel(t, "edge")
	w.forget()
	if _, err := w.Complete(t.Context(), w.here(t)); !errors.Is(err, reconcile.ErrElsewhere) {
		t.Errorf("error %v", err)
	}
	w.checkCalls(t)
}

// A move with a shutdown: the new cluster gets no object while the former one has any. Each
// agent starts without memory in each of its passes.
func TestMoveWithShutdown(t *testing.T) {
	w, c := stopping(t)
	here, there := w.objects, map[string]map[string]any{}
	edge := func() {
		t.Helper()
		w.visit("edge", there)
		w.after(t, time.Second)
	}
	local := func(d time.Duration) {
		t.Helper()
		w.visit(application.LocalCluster, here)
		w.after(t, d)
		if len(here) > 0 && len(there) > 0 {
			t.Errorf("here: %d objects, there: %d", len(here), len(there))
		}
	}
	w.travel(t, "edge")
	edge()
	w.checkReady(t, application.StateMigrating, "WaitingForShutdown", "cluster local: the Application has to shut down there first")
	w.checkCondition(t, application.MigratingCondition, "WaitingForShutdown", "cluster local: the Application has to shut down there first")
	check.Equal(t, "cluster of the documents", application.LocalCluster, w.app(t).Status.ClusterName())
	w.checkSilent(t, 2)
	local(time.Second)
	w.checkSilent(t, 2)
	edge()
	w.checkReady(t, application.StateWaiting, "WaitingForShutdown", "cluster local: the Application has to shut down there first")

	local(grace + 2*time.Second)
	check.Equal(t, "state", application.StateDegraded, w.record(t).State)
	check.Equal(t, "objects here", 5, len(here))
	w.checkSilent(t, 2)
	edge()
	const kept = "cluster local: the Application did not shut down, and is kept: ask again with a new value of krake.dev/shutdown-retry, " +
		"or remove shutdown from krake.dev/hooks: it has not confirmed within 30s"
	w.checkReady(t, application.StateDegraded, "ShutdownNotConfirmed", kept)
	w.checkCondition(t, application.StalledCondition, "ShutdownNotConfirmed", kept)
	w.checkSilent(t, 2)

	w.annotate(application.ShutdownRetryAnnotation, "1")
	local(time.Second)
	edge()
	w.checkReason(t, application.StalledCondition, "Progressing")
	if len(c.calls) < 2 {
		t.Errorf("called: %q", c.calls)
	}
	w.visit(application.LocalCluster, here)
	w.confirm(t) // the token belongs to the former cluster
	edge()
	w.checkReason(t, application.ReadyCondition, "WaitingForShutdown")
	local(time.Second)
	check.Equal(t, "objects here", 0, len(here))
	w.checkHolders(t, "edge")
	edge()
	w.checkReady(t, application.StateRunning, "Ready", ready)
	w.checkCondition(t, application.MigratingCondition, "", "")
	check.Equal(t, "objects there", 5, len(there))
}

// await writes as the agent of edge that it can carry the Application out, and returns here.
func (w *world) await(t *testing.T) {
	t.Helper()
	here := w.objects
	w.visit("edge", map[string]map[string]any{})
	w.after(t, time.Second)
	w.checkTouches(t)
	w.visit(application.LocalCluster, here)
}

// No shutdown starts unless the new cluster is ready: its agent is absent, does not accept, or
// its target is silent. It also does not start for a cluster that was ready, but is no longer
// the destination.
func TestShutdownThatNobodyAwaits(t *testing.T) {
	cases := map[string]func(t *testing.T, w *world){
		"no agent": func(*testing.T, *world) {},
		"an agent without hooks": func(t *testing.T, w *world) {
			w.visit("edge", map[string]map[string]any{})
			w.Secrets = nil
			w.after(t, time.Second)
			w.checkReason(t, application.ReadyCondition, "Refused")
		},
		"a silent target": func(t *testing.T, w *world) {
			w.visit("edge", map[string]map[string]any{})
			w.failures["Locate"] = errSilent
			w.mustFail(t)
			clear(w.failures)
		},
		"another one": func(t *testing.T, w *world) {
			w.await(t)
			w.travel(t, "third")
		},
		"one that has changed its mind": func(t *testing.T, w *world) {
			w.await(t)
			w.visit("edge", map[string]map[string]any{})
			w.Secrets = nil
			w.after(t, time.Second)
		},
	}
	for name, story := range cases {
		w, c := stopping(t)
		here := w.objects
		w.travel(t, "edge")
		story(t, w)
		w.visit(application.LocalCluster, here)
		w.after(t, time.Second)
		if len(c.calls) > 0 || w.here(t).Hooks.Shutdown != nil || len(here) != 5 {
			t.Errorf("%s: called %q, %+v, %d objects", name, c.calls, w.here(t).Hooks.Shutdown, len(here))
		}
	}
}

// An Application that returns during a shutdown is repaired. When it leaves again, the
// shutdown is requested again, whatever was confirmed before, even if no agent ran meanwhile.
func TestThereAndBackDuringAShutdown(t *testing.T) {
	for _, mode := range []string{"enforce", "suspend"} {
		for _, confirmed := range []bool{false, true} {
			w, c := stopping(t)
			w.travel(t, "edge")
			w.await(t)
			w.after(t, time.Second)
			if confirmed {
				w.confirm(t)
			}
			w.travel(t, application.LocalCluster)
			w.set(t, application.ModeAnnotation, mode)
			w.confirm(t)
			w.after(t, 10*time.Millisecond)
			check.Equal(t, mode+": record", (*application.ShutdownRecord)(nil), w.here(t).Hooks.Shutdown)
			w.set(t, application.ModeAnnotation, "enforce")
			w.travel(t, "edge")
			w.await(t)
			w.after(t, time.Second)
			if record := w.record(t); record.State != application.StateWaiting || len(c.calls) != 2 || len(w.objects) != 5 {
				t.Errorf("%s: %+v; called: %q; %d objects", mode, record, c.calls, len(w.objects))
			}
		}
	}
}

// An Application that is deleted during a move has already got its request. Objects that exist
// nowhere get none.
func TestDeletionDuringAMoveWithShutdown(t *testing.T) {
	w, c := stopping(t)
	here, there := w.objects, map[string]map[string]any{}
	w.travel(t, "edge")
	w.await(t)
	w.after(t, time.Second)
	deadline := w.record(t).Deadline
	deleted(w)
	w.visit("edge", there)
	w.after(t, time.Second)
	w.visit(application.LocalCluster, here)
	w.after(t, time.Second)
	if record := w.record(t); record.State != application.StateWaiting || !record.Deadline.Equal(&deadline) || record.Attempt != 1 {
		t.Errorf("record: %+v", record)
	}
	w.confirm(t)
	w.after(t, time.Second)
	w.checkKept(t, false)
	check.Equal(t, "objects here and there", []int{0, 0}, []int{len(here), len(there)})
	check.Equal(t, "it was called", true, len(c.calls) > 0)
}

// In modes without writes, no shutdown is requested.
func TestMoveWithShutdownInOtherModes(t *testing.T) {
	for _, mode := range []string{"observe", "suspend"} {
		w, c := stopping(t)
		w.travel(t, "edge")
		w.set(t, application.ModeAnnotation, mode)
		w.after(t, time.Second)
		check.Empty(t, mode+": called", c.calls)
		check.Equal(t, mode+": record", (*application.ShutdownRecord)(nil), w.here(t).Hooks.Shutdown)
		w.visit("edge", map[string]map[string]any{})
		w.after(t, time.Second)
		w.checkTouches(t)
	}
}

// A move follows the strategy of a deletion: objects that do not confirm are deleted on the
// former cluster, and created on the new one.
func TestMoveOfWhatDoesNotShutDown(t *testing.T) {
	w, _ := stopping(t)
	here, there := w.objects, map[string]map[string]any{}
	w.set(t, application.ShutdownStrategyAnnotation, "delete")
	w.travel(t, "edge")
	w.await(t)
	w.after(t, time.Second, grace+2*time.Second)
	w.visit("edge", there)
	w.after(t, time.Second)
	check.Equal(t, "objects here and there", []int{0, 5}, []int{len(here), len(there)})
	w.checkHolders(t, "edge")
}

// Two names refer to one target. The moved objects exist there, and are neither asked to shut
// down nor deleted.
func TestShutdownOnTheSameClusterByAnotherName(t *testing.T) {
	w, c := stopping(t)
	here, identity := w.objects, func() types.UID { return "one" }
	w.passWith(t, application.HooksAnnotation, "")
	w.travel(t, "edge")
	w.visit("edge", here)
	w.Target = identity
	w.mustPass(t)
	w.passWith(t, application.HooksAnnotation, "shutdown")
	w.visit(application.LocalCluster, here)
	w.Target = identity
	w.after(t, time.Second)
	check.Equal(t, "objects here", 5, len(here))
	check.Empty(t, "called", c.calls)
	w.checkHolders(t, "edge")
}

// A retry without proof changes nothing.
func TestRetryOfWhatIsNotDegraded(t *testing.T) {
	w, _ := stopping(t)
	for range 2 {
		before := w.cm.DeepCopy()
		if _, err := w.RetryShutdown(t.Context(), w.here(t)); !errors.Is(err, reconcile.ErrNotDegraded) {
			t.Errorf("error %v", err)
		}
		check.Equal(t, "the Application", before, w.cm)
		deleted(w)
		w.after(t, time.Second)
	}
}

// A kind that never has Pods need not be gone. An unknown kind may have Pods, so it must be
// gone.
func TestWhatShutsDown(t *testing.T) {
	w, _ := stopping(t)
	w.edit(t, func(cm *corev1.ConfigMap) {
		cm.Data[application.ManifestKey] += "---\n{apiVersion: example.com/v1, kind: Song, metadata: {name: song}}"
	})
	w.mustPass(t)
	deleted(w)
	delete(w.objects, "Deployment web")
	w.after(t, time.Second)
	w.checkState(t, application.StateWaiting)
	delete(w.objects, "Song song")
	w.after(t, time.Second)
	w.checkKept(t, false)
}
