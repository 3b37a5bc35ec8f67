package reconcile_test

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// travel moves the Application: the user's change, completed by admission.
func (w *world) travel(t *testing.T, to string) {
	t.Helper()
	w.set(t, application.ClusterAnnotation, to)
}

// visit starts an agent of another cluster, without memory and with these objects.
func (w *world) visit(cluster string, objects map[string]map[string]any) {
	w.restart()
	w.ClusterName, w.objects = cluster, objects
	w.forget()
}

// passOn makes a pass of an agent of another cluster, as visit starts it.
func (w *world) passOn(t *testing.T, cluster string, objects map[string]map[string]any) {
	t.Helper()
	w.visit(cluster, objects)
	w.mustReconcile(t)
}

func (w *world) checkHolders(t *testing.T, want ...string) {
	t.Helper()
	check.Equal(t, "holders", want, application.HoldersOf(w.cm))
}

// A complete move. Objects stay on the former cluster until all of them exist and are healthy
// on the new one. Each agent writes only its own fields.
func TestMove(t *testing.T) {
	w := running(t, twoObjects, "")
	here, there := w.objects, map[string]map[string]any{}
	w.travel(t, "edge")
	w.checkHolders(t, "edge", "local")
	w.checkCallsOfPass(t, "Stop") // the new cluster is still empty

	w.visit("edge", there)
	w.Target = func() types.UID { return "uid of edge" }
	w.answer = func(live map[string]any) { setPods(&unstructured.Unstructured{Object: live}, 0) }
	w.mustReconcile(t)
	check.Equal(t, "target", "uid of edge", w.app(t).Status.Target)
	w.checkReason(t, application.MigratingCondition, "WaitingForHealth")
	w.checkReason(t, application.ReadyCondition, "InProgress")
	w.checkState(t, application.StateMigrating)
	w.passOn(t, "local", here)
	w.checkCalls(t, "Stop")

	w.visit("edge", there)
	w.change(t, "Deployment web", func(live *unstructured.Unstructured) { setPods(live, 1) })
	w.mustReconcile(t)
	w.checkReason(t, application.MigratingCondition, "CleaningUpFormerCluster")

	w.passOn(t, "local", here)
	w.checkCalls(t, "Stop", "Delete Deployment web", "Delete ConfigMap config",
		"Write inventory.local holder.krake.dev/local finalizers")
	check.Equal(t, "objects here and there", []int{0, 2}, []int{len(here), len(there)})
	w.checkHolders(t, "edge")

	w.passOn(t, "edge", there)
	w.checkReady(t, application.StateRunning, "Ready", ready)
	w.checkCondition(t, application.MigratingCondition, "", "")
	check.Equal(t, "target at rest", "", w.app(t).Status.Target)
}

// The states of the new cluster that let the former one delete its objects, and those that do
// not.
func TestWhenAFormerClusterLetsGo(t *testing.T) {
	handedOver := func(w *world, t *testing.T) {
		t.Helper()
		w.travel(t, "edge")
		w.passOn(t, "edge", map[string]map[string]any{})
	}
	cases := []struct {
		name string
		set  func(w *world, t *testing.T)
		lets bool
	}{
		{"everything is there", func(*world, *testing.T) {}, true},
		{"another spec is not there yet", func(w *world, _ *testing.T) {
			w.cm.Data[application.ManifestKey] = `{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "2"}}`
		}, false},
		{"it goes on to a third cluster, which has nothing yet", func(w *world, t *testing.T) { w.travel(t, "third") }, false},
		{"it says to write nothing", func(w *world, _ *testing.T) { w.annotate(application.ModeAnnotation, application.Observe) }, false},
		{"it is suspended", func(w *world, _ *testing.T) { w.annotate(application.ModeAnnotation, application.Suspend) }, false},
		{"it is being deleted, wherever it was to be", func(w *world, t *testing.T) { w.travel(t, "third"); deleted(w) }, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, oneObject, "")
			here := w.objects
			handedOver(w, t)
			c.set(w, t)
			w.passOn(t, "local", here)
			check.Equal(t, "it lets go", c.lets, len(here) == 0)
			w.checkCallsOfPass(t, "Stop")
		})
	}
}

// The Application returns before the other cluster has acted, or after it has all objects. The
// objects here are repaired, and those of the other cluster are deleted.
func TestThereAndBack(t *testing.T) {
	w := running(t, oneObject, "")
	here, there := w.objects, map[string]map[string]any{}
	w.travel(t, "edge")
	w.travel(t, "local")
	w.checkHolders(t, "local") // edge has never had any object, if that cluster exists

	w.travel(t, "edge")
	w.passOn(t, "edge", there)
	w.travel(t, "local")
	w.mustReconcile(t)
	check.Equal(t, "objects there, before the status speaks of this cluster", 1, len(there))
	w.visit("local", here)
	delete(here, "ConfigMap config")
	w.mustReconcile(t)
	w.passOn(t, "edge", there)
	w.checkHolders(t, "local")
	check.Equal(t, "objects here and there", []int{1, 0}, []int{len(here), len(there)})
}

// A status that an agent could not write before the move is not written after the return: the
// other cluster would delete its objects at once.
func TestWhatWasPendingBeforeAMove(t *testing.T) {
	w := running(t, oneObject, "")
	here, there := w.objects, map[string]map[string]any{}
	home := w.Reconciler
	drift(t, w)
	w.hubFails = errSilent
	w.mustTry(t)
	w.hubFails = nil
	w.travel(t, "edge")
	w.passOn(t, "edge", there)
	w.travel(t, "local")

	delete(here, "ConfigMap config")
	w.Reconciler, w.objects = home, here
	w.failures["Create ConfigMap config"] = errors.New("no")
	w.mustFail(t)
	clear(w.failures)
	w.passOn(t, "edge", there)
	check.Equal(t, "objects there", 1, len(there))
}

// Two names refer to one cluster, and the agents do not know each other. The moved objects
// exist there, and must not be deleted.
func TestMoveToTheSameClusterByAnotherName(t *testing.T) {
	w := running(t, oneObject, "")
	here := w.objects
	identity := func() types.UID { return "one" }
	w.travel(t, "edge")
	w.visit("edge", here)
	w.Target = identity
	w.mustReconcile(t)
	w.visit("local", here)
	w.Target = identity
	w.mustReconcile(t)
	check.Equal(t, "objects here", 1, len(here))
	w.checkHolders(t, "edge")
}

// Two names refer to one cluster, but the agents use different namespaces. Objects in the
// former namespace remain unless its agent deletes them.
func TestMoveToAnotherNamespaceOfTheSameCluster(t *testing.T) {
	w := running(t, oneObject, "")
	here, there := w.objects, map[string]map[string]any{}
	identity := func() types.UID { return "one" }
	w.travel(t, "edge")
	w.visit("edge", there)
	w.Target, w.Namespaces.Map = identity, map[string]string{"demo": "tenant"}
	w.mustReconcile(t)
	w.visit("local", here)
	w.Target = identity
	w.mustReconcile(t)
	check.Equal(t, "objects in the former namespace and in the other one", []int{0, 1}, []int{len(here), len(there)})
	w.checkHolders(t, "edge")
}

// A cluster that was abandoned once is not abandoned again when the Application returns to it.
func TestMoveToAClusterThatWasGivenUp(t *testing.T) {
	w := running(t, oneObject, "")
	w.travel(t, "edge")
	w.annotate(application.ForceDeleteAnnotation, "local")
	stored := w.cm.DeepCopy()
	w.annotate(application.ClusterAnnotation, "local")
	prepared := mutate.PrepareForUpdate(t.Context().Err, w.cm, stored, true)
	if len(prepared.Refusals) != 1 || prepared.Refusals[0].Field != "metadata.annotations[krake.dev/force-delete]" {
		t.Errorf("refusals: %v", prepared.Refusals)
	}
}

// An agent that has not done anything yet does not change the values that the former one has
// learned.
func TestArrivalThatIsNone(t *testing.T) {
	w := running(t, oneObject, "")
	want := w.documents(t)
	w.travel(t, "edge")
	for name, fails := range map[string]func(){
		"refused":     func() { w.Namespaces.Allowed = []string{"other"} },
		"unreachable": func() { w.failures["Observe"] = errSilent },
		"suspended":   func() { w.annotate(application.ModeAnnotation, application.Suspend) },
	} {
		w.visit("edge", map[string]map[string]any{})
		fails()
		w.step = time.Minute
		for range 2 {
			_, err := w.reconcile(t)
			if err != nil && name != "unreachable" {
				t.Errorf("%s: %v", name, err)
			}
		}
		check.Equal(t, name+": documents", want, w.documents(t))
		w.checkReason(t, application.MigratingCondition, "Creating")
		clear(w.failures)
		delete(w.cm.Annotations, application.ModeAnnotation)
	}
}

// A value that one cluster's API server has assigned is not sent to another one. It is not
// removed where it was set.
func TestAssignedValuesStayWhereTheyAre(t *testing.T) {
	const service = `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}`
	const observed = `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: null}}`
	assign := func(address string) func(map[string]any) {
		return func(live map[string]any) {
			if addressOf(live) == "" {
				writes(address, "spec", "clusterIP")(live)
			}
		}
	}
	w := newWorld(t, service, observed)
	w.answer = assign("10.0.0.1")
	w.mustReconcile(t)
	here, there := w.objects, map[string]map[string]any{}
	check.Equal(t, "the address was learned", true, strings.Contains(w.cm.Data[application.LearnedKey], "10.0.0.1"))

	w.travel(t, "edge")
	checkLacks(t, "10.0.0.1", w.cm.Data[application.LastAppliedKey])
	w.visit("edge", there)
	w.answer = assign("10.9.9.9")
	w.mustReconcile(t)
	check.Equal(t, "address of the Service", "10.9.9.9", addressOf(there["Service web"]))
	if learned := w.cm.Data[application.LearnedKey]; strings.Contains(learned, "10.0.0.1") || !strings.Contains(learned, "10.9.9.9") {
		t.Errorf("learned: %s", learned)
	}

	w.travel(t, "local")
	w.passOn(t, "local", here)
	w.checkTouches(t)
}

// The agent ignores documents that another agent forges about its cluster. The agent of a
// compromised cluster could write fields on all others.
func TestForgedDocuments(t *testing.T) {
	const service = `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}`
	const observed = `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: null}}`
	forge := func(w *world) {
		w.cm.Data[application.LearnedKey] = `[{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"clusterIP":"10.0.66.66"}}]`
		w.cm.Data[application.LastObservedKey] = `[{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"injected":"here"}}]`
	}
	w := newWorld(t, service, observed)
	w.answer = func(live map[string]any) {
		live["spec"].(map[string]any)["clusterIP"], live["spec"].(map[string]any)["injected"] = "10.0.0.1", "here"
	}
	w.mustReconcile(t)
	here := w.objects
	forge(w)
	w.passOn(t, "local", here) // home again, after the agent there has written
	w.checkTouches(t)
	check.Equal(t, "the address was learned", true, strings.Contains(w.cm.Data[application.LearnedKey], "10.0.0.1"))

	w.travel(t, "edge") // to a cluster where it has never been
	forge(w)
	w.cm.Data[application.StatusKey] = `{"cluster":"edge","state":"RUNNING"}`
	w.visit("edge", map[string]map[string]any{})
	created := ""
	w.admit = func(_, after map[string]any) error {
		created = addressOf(after)
		return nil
	}
	w.answer = func(map[string]any) {}
	w.mustReconcile(t)
	check.Equal(t, "address at the creation", "", created)
}

// While the hub does not answer, objects are repaired, but none is created that the hub does
// not know. When the hub is back, the results are written.
func TestHubThatDoesNotAnswer(t *testing.T) {
	w := running(t, oneObject, "")
	w.hubFails = errSilent
	for range 3 {
		drift(t, w)
		w.forget()
		w.mustTry(t)
		w.checkTouches(t, "Patch ConfigMap config replace /data/a")
	}
	delete(w.objects, "ConfigMap config")
	w.gone["ConfigMap config"] = true
	w.mustTry(t)
	w.checkObjects(t, 1)
	check.Equal(t, "pending", []types.NamespacedName{appName}, w.Pending())

	w.hubFails = nil
	w.mustReconcile(t)
	if drifts := w.app(t).Status.Drifts; len(drifts) != 2 || drifts[1].Count != 3 {
		t.Errorf("the history: %v", drifts)
	}
	check.Empty(t, "pending", w.Pending())
	w.checkQuiet(t)
}

// The agent does not call a silent hub for a while: no repair waits for it.
func TestRepairDoesNotWaitForASilentHub(t *testing.T) {
	w := running(t, oneObject, "")
	w.step = time.Second
	w.hubFails = errSilent
	w.respec(oneObject+" ", "") // this status must be written
	w.mustTry(t)
	drift(t, w)
	w.forget()
	w.mustTry(t)
	check.Equal(t, "writes", []string{"Patch ConfigMap config replace /data/a"}, w.writes())
}

// mustTry runs a pass that may fail, whether or not the agent pauses its calls to the hub.
func (w *world) mustTry(t *testing.T) {
	t.Helper()
	if result, err := w.reconcile(t); err == nil && result == (ctrl.Result{}) {
		t.Error("it is not to be tried again")
	}
}

// A new object waits for the hub, the others do not.
func TestNothingIsCreatedBehindTheHub(t *testing.T) {
	w := running(t, oneObject, "")
	w.respec(oneObject+"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}", "")
	drift(t, w)
	w.hubFails = errSilent
	for range 3 {
		w.mustTry(t)
	}
	w.checkObjects(t, 1)
	w.checkTouches(t, "Patch ConfigMap config replace /data/a")
	w.hubFails = nil
	w.step = time.Minute
	w.mustReconcile(t)
	w.checkObjects(t, 2)
}

// If a target is known not to answer, no request is sent, and the conditions report it. When
// it answers, they describe the objects again.
func TestUnreachable(t *testing.T) {
	w := running(t, oneObject, "")
	for range 2 {
		if result, err := w.Unreachable(t.Context(), ctrl.Request{NamespacedName: appName}); err != nil || result != (ctrl.Result{}) {
			t.Errorf("result %+v, error %v", result, err)
		}
	}
	w.checkCalls(t, "Write status") // once
	w.checkCondition(t, application.ReadyCondition, "TargetUnreachable", "the API server of cluster local does not answer: the status of its objects is the last known one")
	w.mustReconcile(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
}

// A target that stays silent is reported, but not at once.
func TestSilence(t *testing.T) {
	w := running(t, oneObject, "")
	w.failures["Observe"] = errSilent
	w.step = 6 * time.Second
	for _, want := range []string{"Ready", "Ready", "TargetUnreachable"} {
		w.mustFail(t)
		w.checkReason(t, application.ReadyCondition, want)
	}
}

// If the target does not answer about one object, the pass does not ask about the others. Each
// request would wait for its time-out.
func TestATargetThatFallsSilentDuringAPass(t *testing.T) {
	silent := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	w := newWorld(t, twoObjects, "")
	w.failures["Create ConfigMap config"] = silent
	w.mustFail(t)
	w.checkTouches(t, "Create ConfigMap config")
	w.checkReason(t, application.ReadyCondition, "TargetUnreachable")

	w = running(t, twoObjects, "")
	deleted(w)
	w.failures["Delete Deployment web"] = silent
	w.failures["Delete ConfigMap config"] = silent
	w.mustFail(t)
	check.Equal(t, "deletions that were asked for", 1, len(w.touches()))
	check.Equal(t, "held", 2, len(w.app(t).Inventory))
	clear(w.failures)
	w.mustReconcile(t)
	w.checkObjects(t, 0)
}

// The agent maps namespaces to the names of its cluster. Documents and manifests keep the
// hub's names.
func TestMappedNamespace(t *testing.T) {
	for _, manifest := range []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "1"}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: demo}, data: {a: "1"}}`,
	} {
		w := newWorld(t, manifest, "")
		applied := w.cm.Data[application.LastAppliedKey]
		w.Namespaces.Map = map[string]string{"demo": "tenant"}
		w.mustReconcile(t)
		live := unstructured.Unstructured{Object: w.objects["ConfigMap config"]}
		check.Equal(t, "namespace", "tenant", live.GetNamespace())
		check.Equal(t, "what is applied", applied, w.cm.Data[application.LastAppliedKey])
		w.checkQuiet(t)
		w.respec(strings.Replace(manifest, `, data: {a: "1"}`, "", 1), "")
		w.stale["ConfigMap config"] = true
		w.checkLastPass(t, "Patch ConfigMap config remove /data")
		deleted(w)
		w.mustReconcile(t)
		w.checkObjects(t, 0)
	}
}

// A user who abandons objects gets a list of them, because no agent knows them afterwards.
func TestAbandoned(t *testing.T) {
	w := running(t, twoObjects, "")
	deleted(w)
	w.failures["Delete ConfigMap config"] = errSilent
	w.mustFail(t)
	w.checkReason(t, application.ReadyCondition, "TargetUnreachable")
	w.forget()
	w.cm = nil
	w.mustReconcile(t)
	w.checkReports(t, "Abandoned v1 ConfigMap demo/config")
	w.mustRest(t)
	w.checkReports(t)
}

// setPods sets the status of a Deployment of one Pod to this number of ready Pods.
func setPods(live *unstructured.Unstructured, ready int64) {
	if live.GetKind() != "Deployment" {
		return
	}
	live.SetGeneration(1)
	live.Object["status"] = map[string]any{
		"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": ready, "availableReplicas": ready,
		"conditions": []any{map[string]any{"type": "Available", "status": string(metav1.ConditionTrue)}},
	}
}
