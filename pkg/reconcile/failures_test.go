package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/test/check"
)

// secret is a value that an API server repeats in its answers, and that must not be published.
const secret = "hunter2"

var resource = gvr.GroupResource{Resource: "configmaps"}

func invalid() error {
	return apierrors.NewInvalid(gvr.GroupKind{Kind: "ConfigMap"}, "config", field.ErrorList{
		field.Invalid(field.NewPath("data", "a"), secret, "must not be "+secret),
	})
}

// The advice that follows each error.
const (
	unlessBound     = ": grant the permission to the agent or to the Application's service account"
	unlessCorrected = ": correct it in the Application"
	unlessAdopted   = ": annotate the Application with krake.dev/adopt=true to adopt it, or choose another name"
)

// notShown is in place of a text that may repeat values.
const notShown = "the API server's text may repeat values: kubectl apply --dry-run=server shows it"

// A spec that cannot be carried out is not tried again automatically: only another spec helps.
// No object is touched, and the condition is written once.
func TestRefused(t *testing.T) {
	w := running(t, oneObject, "")
	w.respec(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: kube-system}}`, "")
	w.checkCallsOfPass(t, "Write status krake.dev/state") // no error, and no next pass
	w.checkReconciled(t, application.StateFailed, "Refused", "refused: data.spec.manifest[0].metadata.namespace: Forbidden: "+
		`an Application creates objects in its own namespace only: leave it out, or create the Application in namespace "kube-system"`)
	check.Equal(t, "inventory", []string{"ConfigMap config"}, w.inventory(t))
	w.checkCallsOfPass(t)

	w.respec(oneObject, "")
	w.mustReconcile(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
}

// Another client was faster: this is no failure, but a reason to try again soon.
func TestConflict(t *testing.T) {
	conflict := apierrors.NewConflict(resource, "app", errors.New("changed"))
	cases := []struct {
		name, call string
		calls      []string
	}{
		{"the Application changed before the inventory could be written: nothing is created", "Write inventory.local status krake.dev/state finalizers",
			[]string{"Observe", "Write inventory.local status krake.dev/state finalizers", "Start"}},
		{"the Application changed while it was worked on", "Write inventory.local status status.last_observed_manifest krake.dev/state",
			[]string{"Observe", "Write inventory.local status krake.dev/state finalizers", "Create ConfigMap config", "Write inventory.local status status.last_observed_manifest krake.dev/state", "Start"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, oneObject, "")
			w.failures[c.call] = conflict
			w.checkRequeued(t)
			w.checkCalls(t, c.calls...)
			clear(w.failures)
			w.mustReconcile(t)
			w.checkQuiet(t)
		})
	}
	t.Run("an object that somebody else writes to all the time", func(t *testing.T) {
		w := running(t, oneObject, "")
		drift(t, w)
		w.failures["Patch ConfigMap config replace /data/a"] = conflict
		w.checkRequeued(t)
		w.checkReconciled(t, application.StateFailed, "Error", "v1 ConfigMap demo/config: Conflict: configmaps app")
	})
	t.Run("a deletion", func(t *testing.T) {
		w := running(t, oneObject, "")
		deleted(w)
		w.failures["Write inventory.local status holder.krake.dev/local krake.dev/state finalizers"] = conflict
		w.checkRequeued(t)
	})
}

func (w *world) checkRequeued(t *testing.T) {
	t.Helper()
	if result, err := w.reconcile(t); err != nil || result.RequeueAfter <= 0 {
		t.Errorf("result %+v, error %v, want another try in a moment", result, err)
	}
}

// drift changes the observed field as another client.
func drift(t *testing.T, w *world) {
	t.Helper()
	w.change(t, "ConfigMap config", func(live *unstructured.Unstructured) { live.Object["data"] = map[string]any{"a": secret} })
}

// The API server's text about an object's values stays out of the condition and of the logged
// error: it may contain a secret.
func TestSecretsInAnswers(t *testing.T) {
	cases := []struct {
		name   string
		set    func(t *testing.T, w *world)
		reason string
		want   string
		err    string // empty if only another spec helps
	}{
		{"of a creation", func(_ *testing.T, w *world) {
			w.objects = map[string]map[string]any{}
			w.failures["Create ConfigMap config"] = invalid()
		}, "Invalid", "v1 ConfigMap demo/config: Invalid: ConfigMap config: data.a: Invalid value" + unlessCorrected, ""},
		{"of a deletion", func(t *testing.T, w *world) {
			w.respec(twoObjects, "")
			w.mustReconcile(t)
			w.respec(oneObject, "")
			w.failures["Delete Deployment web"] = noRight("web")
		}, "Forbidden", "apps/v1 Deployment demo/web: Forbidden: configmaps web" + unlessBound, "Forbidden: configmaps web"},
		{"of a webhook on the target", func(t *testing.T, w *world) {
			drift(t, w)
			w.failures["Patch ConfigMap config replace /data/a"] = &apierrors.StatusError{ErrStatus: metav1.Status{
				Reason: metav1.StatusReasonBadRequest, Message: "no: " + secret,
			}}
		}, "Error", "v1 ConfigMap demo/config: BadRequest: " + notShown, "BadRequest: " + notShown},
		{"several: the gravest is told, the other tried again", func(t *testing.T, w *world) {
			w.respec(twoObjects, "")
			drift(t, w)
			w.failures["Patch ConfigMap config replace /data/a"] = invalid()
			w.failures["Create Deployment web"] = noRight("web")
		}, "Invalid", "v1 ConfigMap demo/config: data.a: Invalid: ConfigMap config: data.a: Invalid value" + unlessCorrected, "Forbidden: configmaps web"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, oneObject, "")
			c.set(t, w)
			_, err := w.reconcile(t)
			w.checkReconciled(t, application.StateFailed, c.reason, c.want)
			check.Equal(t, "text of the error", c.err, check.Message(err))
			checkLacks(t, secret, fmt.Sprintf("%v %+v %q", err, err, err), w.cm.Data[application.StatusKey], strings.Join(w.reports, ""))
		})
	}
}

// A difference that no patch can repair is a failure, and is not reported as a repair each
// time.
func TestNothingToRepairWith(t *testing.T) {
	w := newWorld(t, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}`, `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: null}, {observer_schema_list_min_length: 2, observer_schema_list_max_length: 3}]}
`)
	w.mustReconcile(t) // the manifest is created in full
	w.mustRest(t)      // only another spec helps
	w.checkReports(t)
	w.checkReconciled(t, application.StateFailed, "Ineffective", "v1 Service demo/web: spec.ports: the repair had no lasting effect: "+
		"either the desired state itself is invalid, or the API server does not keep it: "+
		"compare them (kubectl krake diff), and correct the manifest, or leave the field out of the observer schema")
}

// If the document of the inventory or of the learned values cannot be read, its content is
// unknown. Then nothing is done, the document stays unchanged, and the condition is written
// once.
func TestDamagedDocuments(t *testing.T) {
	for key, said := range map[string]string{
		application.InventoryKey(application.LocalCluster): "decode inventory.local",
		application.LearnedKey:                             "decode status.learned",
	} {
		for _, state := range []string{"running", "deleted"} {
			t.Run(key+", "+state, func(t *testing.T) {
				w := running(t, oneObject, "")
				w.cm.Data[key] = "{"
				if state == "deleted" {
					deleted(w)
				}
				delete(w.objects, "ConfigMap config")
				w.mustReconcile(t)
				check.Equal(t, key, "{", w.cm.Data[key])
				stalled := meta.FindStatusCondition(w.app(t).Status.Conditions, application.StalledCondition)
				if stalled == nil || stalled.Reason != "Unreadable" || !strings.Contains(stalled.Message, said) {
					t.Errorf("Stalled is %+v", stalled)
				}
				w.checkCallsOfPass(t, "Stop")
			})
		}
	}
}

// The loop reports a failure of an Application once when it begins, and once when it ends. The error
// of each failed pass is one that the status states.
func TestAFailureIsReportedWhenItBeginsAndEnds(t *testing.T) {
	w := running(t, deployments(2), "")
	var told []string
	w.Failing = func(app *application.Application, reconciled metav1.Condition) {
		told = append(told, fmt.Sprint(app.Name, reconciled.Status, reconciled.Reason))
	}
	w.mustReconcile(t)
	drift := func(replicas int64) {
		for i := range 2 {
			w.write(t, fmt.Sprintf("Deployment web-%03d", i), replicas, "spec", "replicas")
		}
	}
	w.admit = func(_, _ map[string]any) error {
		return apierrors.NewForbidden(gvr.GroupResource{Resource: "deployments"}, "web", errors.New("no right"))
	}
	drift(7)
	for i := range 8 { // after some of them, the objects are left alone for a while
		if _, err := w.reconcile(t); i == 0 && err == nil || err != nil && !reconcile.IsStated(err) {
			t.Errorf("%v: not for users", err)
		}
	}
	check.Equal(t, "told", []string{"appFalseForbidden"}, told)
	w.admit = func(_, _ map[string]any) error { return nil }
	w.step = time.Hour
	w.mustReconcile(t)
	check.Equal(t, "told", []string{"appFalseForbidden", "appTrue"}, told)

	w.hubFails = errors.New("the disk is full")
	drift(8)
	if _, err := w.reconcile(t); err == nil || reconcile.IsStated(err) {
		t.Errorf("%v: the status cannot state it", err)
	}

	w.hubFails = nil
	w.admit = func(_, _ map[string]any) error { return errors.New("out of memory") }
	drift(9)
	if _, err := w.reconcile(t); err == nil || reconcile.IsStated(err) {
		t.Errorf("%v: the administrator of the agent has to see it", err)
	}
}

// noRight is the answer of an API server whose authorization refuses a request.
func noRight(name string) error {
	return apierrors.NewForbidden(resource, name, fmt.Errorf("User %q cannot patch resource %q: %s", "agent", resource.Resource, secret))
}

func errTerminating() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: metav1.StatusReasonForbidden, Code: 403,
		Details: &metav1.StatusDetails{Kind: "configmaps", Name: "config", Causes: []metav1.StatusCause{
			{Type: corev1.NamespaceTerminatingCause, Message: "namespace demo is being terminated", Field: "metadata.namespace"},
		}},
	}}
}

// A fault of one object does not delay the others: they are created, and their drift is
// reverted. The kind of fault determines when the object is tried again.
func TestOneObjectApart(t *testing.T) {
	const both = `{apiVersion: v1, kind: %s, metadata: {name: config}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: ClusterIP}}
`
	never, slowly := ctrl.Result{}, ctrl.Result{RequeueAfter: time.Minute}
	cases := []struct {
		name    string
		kind    string
		set     func(w *world)
		reason  string
		stalled string
		want    ctrl.Result
		fails   bool
	}{
		{"a kind that is not served may come, of which an event tells", "Opera", func(*world) {}, "KindNotFound", "KindNotFound", slowly, false},
		{"a kind that must not be watched", "ConfigMap", func(w *world) { w.unknown["ConfigMap config"] = fmt.Errorf("watch it: %w", noRight("config")) },
			"Forbidden", "Forbidden", never, true},
		{"one that must not be created", "ConfigMap", func(w *world) { w.failures["Create ConfigMap config"] = noRight("config") },
			"Forbidden", "Forbidden", never, true},
		{"one whose values are not taken", "ConfigMap", func(w *world) { w.failures["Create ConfigMap config"] = invalid() },
			"Invalid", "Invalid", ctrl.Result{RequeueAfter: 5 * time.Second}, false},
		{"a namespace that goes", "ConfigMap", func(w *world) { w.failures["Create ConfigMap config"] = errTerminating() },
			"NamespaceTerminating", "NamespaceTerminating", slowly, false},
		{"one that is there already", "ConfigMap", func(w *world) { w.alien(nil) }, "AlreadyExists", "Progressing", slowly, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(both, c.kind), "")
			c.set(w)
			for range 2 {
				result, err := w.pass(t)
				if result.RequeueAfter > c.want.RequeueAfter || (result == never) != (c.want == never) || (err != nil) != c.fails {
					t.Errorf("result %+v, error %v", result, err)
				}
			}
			w.checkExists(t, "Service web", true)
			observed := w.app(t).LastObserved.Objects()
			if len(observed) != 1 || observed[0]["kind"] != "Service" {
				t.Errorf("last observed: %v", observed)
			}
			w.somebody(t, "somebody", "Service web", "NodePort", "spec", "type")
			_, err := w.pass(t)
			check.Equal(t, "it fails: "+check.Message(err), c.fails, err != nil)
			kind, _, _ := unstructured.NestedString(w.objects["Service web"], "spec", "type")
			check.Equal(t, "type of the other object, whose drift is reverted", "ClusterIP", kind)
			w.checkReason(t, application.ReconciledCondition, c.reason)
			w.checkReason(t, application.StalledCondition, c.stalled)
			before := w.version
			w.restart()
			if _, err := w.pass(t); (err != nil) != c.fails || w.version != before {
				t.Errorf("after a restart: %q, error %v", w.writes(), err)
			}
		})
	}
}

// An object whose definition is in the same Application waits for it: that is no failure. A definition of another version, or one that cannot
// be created, does not help.
func TestDefinitionOfTheSameApplication(t *testing.T) {
	const withDefinition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: songs.example.com},
  spec: {group: example.com, scope: Namespaced, names: {kind: Song, plural: songs}, versions: [{name: v1, served: true, storage: true}]}}
---
{apiVersion: example.com/%s, kind: Song, metadata: {name: first}}
`
	const waits = "example.com/v1 Song first: the cluster does not serve the kind yet: " +
		"it waits for the CustomResourceDefinition songs.example.com of this Application"
	t.Run("waits", func(t *testing.T) {
		w := newWorld(t, fmt.Sprintf(withDefinition, "v1"), "")
		w.Scope = mutate.ClusterScope
		w.hide("Song")
		w.checkPass(t, "Create CustomResourceDefinition songs.example.com")
		w.checkReady(t, application.StateCreating, "DefinitionNotEstablished", waits)
		w.checkReason(t, application.StalledCondition, "Progressing")
		clear(w.failures)
		w.checkPass(t, "Create Song first")
		w.checkReason(t, application.ReconciledCondition, "Reconciled")
	})
	for name, c := range map[string]struct {
		version, reason string
		refusal         error
	}{
		"another version":              {"v2", "KindNotFound", nil},
		"a definition that is refused": {"v1", "Invalid", invalid()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(withDefinition, c.version), "")
			w.Scope = mutate.ClusterScope
			w.hide("Song")
			w.failures["Create CustomResourceDefinition songs.example.com"] = c.refusal
			w.checkPass(t, "Create CustomResourceDefinition songs.example.com")
			w.checkReason(t, application.ReconciledCondition, c.reason)
			w.checkState(t, application.StateFailed)
		})
	}
}

// Objects of a kind that is not served are not taken for removed from the spec. They are still
// in the inventory when the kind is served again.
func TestHeldOfAnUnservedKind(t *testing.T) {
	w := running(t, twoObjects, "")
	w.hide("Deployment")
	w.checkPass(t)
	w.checkHeld(t, true, "Deployment web", "ConfigMap config")
	w.checkReason(t, application.ReconciledCondition, "KindNotFound")
	clear(w.failures)
	w.mustReconcile(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
	w.checkSilentRestart(t)
}
