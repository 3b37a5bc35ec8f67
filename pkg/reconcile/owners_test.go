package reconcile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

var otherName = types.NamespacedName{Namespace: "demo", Name: "other"}

// owned returns the annotations that an Application of this name and UID sets on the
// ConfigMap.
func owned(owner types.NamespacedName, uid string) map[string]any {
	return map[string]any{
		application.OwnerAnnotation:    owner.String() + " /ConfigMap/demo/config",
		application.OwnerUIDAnnotation: uid,
	}
}

// The owner of an existing object decides what the agent does with it.
func TestOwners(t *testing.T) {
	const (
		marks  = "Patch ConfigMap config add /metadata/annotations add /metadata/labels"
		fields = "Patch ConfigMap config replace /data/a"
	)
	cases := []struct {
		name        string
		annotations map[string]any
		adopt       bool
		others      []types.NamespacedName
		reason      string
		want        []string
	}{
		{"it belongs to nobody", nil, false, nil, "AlreadyExists", nil},
		{"it belongs to nobody, and is adopted: first it becomes ours, then it is changed", nil, true, nil,
			"Reconciled", []string{marks, fields}},
		{"it belongs to another Application", owned(otherName, "x"), false, []types.NamespacedName{otherName}, "OwnedByAnotherApplication", nil},
		{"which it is not taken from", owned(otherName, "x"), true, []types.NamespacedName{otherName}, "OwnedByAnotherApplication", nil},
		{"the other Application is gone", owned(otherName, "x"), false, nil, "AlreadyExists", nil},
		{"the other Application is gone, and it is adopted", owned(otherName, "x"), true, nil, "Reconciled", []string{
			"Patch ConfigMap config replace /metadata/annotations/krake.dev~1owner replace /metadata/annotations/krake.dev~1owner-uid add /metadata/labels", fields,
		}},
		{"it is of a former Application of our name, as after a restored backup", owned(appName, "former"), false, nil, "Reconciled", []string{
			"Patch ConfigMap config replace /data/a replace /metadata/annotations/krake.dev~1owner-uid add /metadata/labels",
		}},
		{"it has a copy of our proof, for another object", map[string]any{
			application.OwnerAnnotation: "demo/app apps/Deployment/demo/web", application.OwnerUIDAnnotation: "app-uid",
		}, false, nil, "AlreadyExists", nil},
	}
	for _, c := range cases {
		for _, seen := range []string{"seen", "unseen"} {
			t.Run(c.name+", "+seen, func(t *testing.T) {
				w := newWorld(t, oneObject, "")
				w.alien(c.annotations)
				w.unseen["ConfigMap config"] = seen == "unseen"
				w.others = c.others
				if c.adopt {
					w.annotate(application.AdoptAnnotation, true)
				}
				before := w.objects["ConfigMap config"]
				w.mustPass(t)
				touches := w.touches()
				if len(touches) > 0 && touches[0] == "Create ConfigMap config" { // refused, because it exists
					touches = append([]string(nil), touches[1:]...)
				}
				check.Equal(t, "writes to the target", c.want, touches)
				w.checkReason(t, application.ReconciledCondition, c.reason)
				if c.want == nil {
					check.Equal(t, "the object", before, w.objects["ConfigMap config"])
					w.checkReason(t, application.ConflictedCondition, c.reason)
					w.checkReason(t, application.StalledCondition, "Progressing")
				} else {
					w.checkReason(t, application.ConflictedCondition, "NoConflicts")
				}
				w.checkRefusedRestart(t, 2) // one creation at each pass
			})
		}
	}
}

// A conflict is reported once. The agent checks it now and then, because no event reports its
// end.
func TestConflictIsTold(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.alien(owned(otherName, "x"))
	w.others = []types.NamespacedName{otherName}
	for i := range 3 {
		w.checkAfter(t, w.step, time.Minute)
		if i == 0 {
			w.checkReports(t, "Conflict v1 ConfigMap demo/config; left unchanged: OwnedByAnotherApplication")
		} else {
			w.checkReports(t)
		}
	}
	w.checkReconciled(t, application.StateFailed, "OwnedByAnotherApplication",
		"the object belongs to the Application demo/other: v1 ConfigMap demo/config: leave it out of one of the two")
	w.others = nil
	w.annotate(application.AdoptAnnotation, true)
	w.mustPass(t)
	w.checkReports(t, "Adopted v1 ConfigMap demo/config", "Configured v1 ConfigMap demo/config: data.a")
	w.checkReady(t, application.StateRunning, "Ready", ready)
}

// An adopted object existed before the Application. It stays after the Application is deleted,
// and after it is removed from the spec, unless the spec requests deletion. An object that was
// created in its place belongs to the Application.
func TestAdopted(t *testing.T) {
	leave := func(w *world) { w.respec(`{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`, "") }
	remade := func(t *testing.T, w *world) {
		w.vanish("ConfigMap config")
		w.mustReconcile(t)
	}
	cases := []struct {
		name   string
		policy string
		before func(*testing.T, *world)
		end    func(*world)
		stays  bool
	}{
		{"the Application is deleted", "", nil, deleted, true},
		{"it leaves the spec", "", nil, leave, true},
		{"the Application is deleted, with all that it has", "delete", nil, deleted, false},
		{"it leaves the spec, and is to be deleted", "delete", nil, leave, false},
		{"it was deleted and made anew", "", remade, deleted, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, oneObject, "")
			w.alien(nil)
			w.annotate(application.AdoptAnnotation, true)
			if c.policy != "" {
				w.annotate(application.DeletionPolicyAnnotation, c.policy)
			}
			w.mustReconcile(t)
			if c.before != nil {
				c.before(t, w)
			}
			w.restart() // the Application stores it, not the process
			c.end(w)
			w.mustReconcile(t)
			left, ok := w.objects["ConfigMap config"]
			check.Equal(t, "it stays", c.stays, ok)
			if object := (&unstructured.Unstructured{Object: left}); ok && len(object.GetLabels())+len(object.GetAnnotations()) > 0 {
				t.Errorf("our marks stay: %v", left)
			}
		})
	}
}

// The proof is an observed field like any other, while the status records that the object with
// this UID has had it. After that the object has no owner.
func TestALostProof(t *testing.T) {
	loses := func(t *testing.T, w *world, annotation string) {
		t.Helper()
		w.change(t, "ConfigMap config", func(live *unstructured.Unstructured) {
			removes("metadata", "annotations", annotation)(live.Object)
		})
	}
	t.Run("it is put back", func(t *testing.T) {
		w := running(t, oneObject, "")
		loses(t, w, application.OwnerAnnotation)
		w.checkLastPass(t, "Patch ConfigMap config add /metadata/annotations/krake.dev~1owner")
		w.checkSilentRestart(t)
	})
	t.Run("by an agent that has only seen it, too", func(t *testing.T) {
		w := running(t, oneObject, "")
		w.restart()
		w.mustReconcile(t)
		loses(t, w, application.OwnerAnnotation)
		w.mustReconcile(t)
		w.checkReason(t, application.ReconciledCondition, "Reconciled")
	})
	t.Run("not on another object of that name", func(t *testing.T) {
		w := running(t, oneObject, "")
		w.alien(nil)
		w.checkRequeued(t)
		w.checkTouches(t)
		w.checkReason(t, application.ReconciledCondition, "AlreadyExists")
	})
	t.Run("not by an agent that does not know of it", func(t *testing.T) {
		w := running(t, oneObject, "")
		loses(t, w, application.OwnerAnnotation)
		w.restart()
		w.checkRequeued(t)
		w.checkTouches(t)
		w.checkReason(t, application.ReconciledCondition, "AlreadyExists")
		w.checkSilentRestart(t)
	})
	t.Run("the UID alone is put back by any", func(t *testing.T) {
		w := running(t, oneObject, "")
		loses(t, w, application.OwnerUIDAnnotation)
		w.restart()
		w.checkLastPass(t, "Patch ConfigMap config add /metadata/annotations/krake.dev~1owner-uid")
	})
}

// Only what the agent recorded in the inventory before it created it is deleted. Any client that may
// patch an object can copy the marks to it, so that the marks alone delete nothing, and release nothing.
func TestForgedMarksDeleteNothing(t *testing.T) {
	forged := func(owner types.NamespacedName, uid string) map[string]any {
		return theirs("v1", "Service", "victim", map[string]any{
			application.OwnerAnnotation: owner.String() + " /Service/demo/victim", application.OwnerUIDAnnotation: uid,
		})
	}
	const text = "v1 Service demo/victim: it has the marks of this Application, but the inventory does not have it: the agent leaves it alone: " +
		"remove the annotations krake.dev/owner and krake.dev/owner-uid, or delete the object"
	cases := []struct {
		name            string
		object          map[string]any
		change          func(*world)
		reason, message string
	}{
		{"with the whole proof", forged(appName, "app-uid"), func(*world) {}, "NotInInventory", text},
		{"in mode observe", forged(appName, "app-uid"), func(w *world) { w.annotate(application.ModeAnnotation, application.Observe) }, "NotInInventory", text},
		{"with an Application that adopts objects, and deletes them", forged(appName, "app-uid"), func(w *world) {
			w.annotate(application.AdoptAnnotation, true)
			w.annotate(application.DeletionPolicyAnnotation, "delete")
		}, "NotInInventory", text},
		{"of a former Application of our name", forged(appName, "former"), func(*world) {}, "NoConflicts", ""},
		{"of another Application", forged(otherName, "app-uid"), func(*world) {}, "NoConflicts", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, oneObject, "")
			w.objects["Service victim"] = c.object
			c.change(w)
			w.checkPass(t)
			w.checkCondition(t, application.ConflictedCondition, c.reason, c.message)
			w.checkReady(t, application.StateRunning, "Ready", ready)
			checkLacks(t, "victim", w.reports...)
			w.checkQuiet(t)
			w.restart()
			deleted(w)
			w.mustPass(t)
			check.Equal(t, "the object after the deletion of the Application", c.object, w.objects["Service victim"])
			check.Equal(t, "reads for its deletion", 0, w.looked["Service victim"])
		})
	}
}

// Any client may mark many objects. The status names one and their number. It is not written for each of them.
func TestManyForgedMarksMakeNoFlood(t *testing.T) {
	w := running(t, oneObject, "")
	mark := func(i int) {
		name := fmt.Sprintf("victim-%05d", i)
		w.objects["ConfigMap "+name] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": name, "namespace": "demo", "uid": name, "resourceVersion": "9",
			"annotations": map[string]any{application.OwnerAnnotation: "demo/app /ConfigMap/demo/" + name, application.OwnerUIDAnnotation: "app-uid"},
		}}
	}
	for i := range 10_000 {
		mark(i)
	}
	w.checkPass(t)
	condition := meta.FindStatusCondition(w.app(t).Status.Conditions, application.ConflictedCondition)
	if condition == nil || !strings.Contains(condition.Message, "v1 ConfigMap demo/victim-00000 and 9999 more: ") || len(condition.Message) > 500 {
		t.Errorf("the condition is %+v", condition)
	}
	writes := 0
	for i := range 10 { // one each 2 s
		mark(10_000 + i)
		w.checkPass(t)
		writes += len(w.writes())
	}
	checkRange(t, "writes of the status for 10 marked objects", 0, 1, writes)
}

// Another version of its API serves the same object: it still counts as adopted, and stays.
func TestAdoptedInAnotherVersion(t *testing.T) {
	w := newWorld(t, `{apiVersion: apps/v1beta2, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}`, "")
	w.objects["Deployment web"] = theirs("apps/v1beta2", "Deployment", "web", nil)
	w.objects["Deployment web"]["spec"] = map[string]any{"replicas": int64(1)}
	w.annotate(application.AdoptAnnotation, true)
	w.mustPass(t)
	w.respec(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}`, "")
	w.objects["Deployment web"]["apiVersion"] = "apps/v1" // as the other version serves it
	w.mustPass(t)
	deleted(w)
	w.mustPass(t)
	w.checkExists(t, "Deployment web", true)
}

// An adoption that cannot be recorded does not happen. After a crash, the agent would delete
// an object that it does not own.
func TestNoAdoptionWithoutARecord(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.alien(nil)
	w.mustPass(t)
	w.annotate(application.AdoptAnnotation, true)
	w.failures["Write inventory.local"] = apierrors.NewServiceUnavailable("not now")
	for range 3 {
		w.forget()
		w.mustFail(t)
		for _, call := range w.touches() {
			if call != "Create ConfigMap config" { // refused, because it exists
				t.Errorf("written without a record: %s", call)
			}
		}
	}
}

// The API server may refuse an adoption, for example by a policy. The status tells its reason.
func TestARefusedAdoption(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.alien(nil)
	w.mustPass(t)
	w.annotate(application.AdoptAnnotation, true)
	w.admit = immutable("metadata", "labels")
	for range 5 {
		w.forget()
		w.mustReconcile(t)
		if patches := len(w.touches()); patches > 2 { // with the create that finds the object
			t.Errorf("%d requests in one pass: %v", patches, w.touches())
		}
	}
	w.checkReconciled(t, application.StateFailed, "Invalid", "v1 ConfigMap demo/config: Invalid: Song aria: metadata.labels: Invalid value: correct it in the Application")
}

// A preview of an adoption adopts nothing: if the user decides against it, the object stays
// unchanged.
func TestAnAdoptionThatWasOnlyLookedAt(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.alien(nil)
	before := w.objects["ConfigMap config"]
	w.mustPass(t)
	w.annotate(application.ModeAnnotation, application.Observe)
	w.annotate(application.AdoptAnnotation, true)
	w.mustPass(t)
	delete(w.cm.Annotations, application.ModeAnnotation)
	delete(w.cm.Annotations, application.AdoptAnnotation)
	w.mustPass(t)
	w.checkReason(t, application.ReconciledCondition, "AlreadyExists")
	check.Equal(t, "the object", before, w.objects["ConfigMap config"])
}

// Every user can write the name of an Application on objects in another namespace. The
// Application cannot have created them there, so the agent does not report them.
func TestMarksOutOfReach(t *testing.T) {
	w := running(t, oneObject, "")
	for i := range 50 {
		name := fmt.Sprint("theirs-", i)
		w.objects["ConfigMap "+name] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": name, "namespace": "elsewhere", "uid": name, "resourceVersion": "9",
			"annotations": map[string]any{application.OwnerAnnotation: "demo/app /ConfigMap/elsewhere/" + name, application.OwnerUIDAnnotation: "app-uid"},
		}}
	}
	w.checkQuiet(t)
	w.checkObjects(t, 51)
	w.checkReason(t, application.ConflictedCondition, "NoConflicts")
}

// Our marks are on every object, are observed, and appear in no document, whatever the schema
// observes.
func TestMarksStayOutOfDocuments(t *testing.T) {
	cases := []struct{ name, labels, schema string }{
		{"labels and annotations of the manifest are observed one by one", `labels: {team: x}, annotations: {note: x}`, ``},
		{"observed as a whole, beside those of the manifest", `labels: {team: x}, annotations: {note: x}`, `labels: null, annotations: null`},
		{"observed as a whole, and there are none but ours", ``, `labels: null, annotations: null`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			observed := ""
			if c.schema != "" {
				observed = fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config, %s}, data: {a: null}}`, c.schema)
			}
			w := newWorld(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config, %s}, data: {a: "1"}}`, c.labels), observed)
			w.mustReconcile(t)
			checkNoMarks(t, w)

			// From here on, the observers' projection is published.
			w.checkQuiet(t)
			checkNoMarks(t, w)
			w.change(t, "ConfigMap config", func(live *unstructured.Unstructured) { live.Object["data"] = map[string]any{"a": "2"} })
			w.mustReconcile(t)
			checkNoMarks(t, w)
			w.checkQuiet(t)

			object := &unstructured.Unstructured{Object: w.objects["ConfigMap config"]}
			for _, annotation := range []string{application.OwnerAnnotation, application.OwnerUIDAnnotation} {
				check.Equal(t, "the object has "+annotation, true, object.GetAnnotations()[annotation] != "")
			}
		})
	}
}

func checkNoMarks(t *testing.T, w *world) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(w.cm.Data)) {
		// The stored schema is the user's, unchanged.
		if strings.HasPrefix(key, "status.") && key != application.MangledSchemaKey && strings.Contains(w.cm.Data[key], application.Prefix) {
			t.Errorf("%s: %s", key, w.cm.Data[key])
		}
	}
}
