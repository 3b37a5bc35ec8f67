package reconcile_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
)

func errNo(name string) error { return apierrors.NewForbidden(resource, name, errors.New(secret)) }

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
		{"a kind that must not be watched", "ConfigMap", func(w *world) { w.unknown["ConfigMap config"] = fmt.Errorf("watch it: %w", errNo("config")) },
			"Forbidden", "Progressing", never, true},
		{"an object that could not be looked at", "ConfigMap", func(w *world) { w.unknown["ConfigMap config"] = errors.New("look at it: panic: runtime error") },
			"Error", "Progressing", never, true},
		{"one that must not be created", "ConfigMap", func(w *world) { w.failures["Create ConfigMap config"] = errNo("config") },
			"Forbidden", "Progressing", never, true},
		{"one whose values are not taken", "ConfigMap", func(w *world) { w.failures["Create ConfigMap config"] = invalid() },
			"Invalid", "Invalid", never, false},
		{"a namespace that goes", "ConfigMap", func(w *world) { w.failures["Create ConfigMap config"] = errTerminating() },
			"NamespaceTerminating", "NamespaceTerminating", slowly, false},
		{"one that is there already", "ConfigMap", func(w *world) { w.alien(nil) }, "AlreadyExists", "Progressing", slowly, false},
		{"an API server that does not answer", "ConfigMap", func(w *world) { w.failures["Create ConfigMap config"] = apierrors.NewServiceUnavailable("no") },
			"Error", "Progressing", never, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(both, c.kind), "")
			c.set(w)
			for range 2 {
				if result, err := w.pass(t); result != c.want || (err != nil) != c.fails {
					t.Errorf("result %+v, error %v", result, err)
				}
			}
			if w.objects["Service web"] == nil {
				t.Fatal("the other object was not created")
			}
			w.somebody(t, "somebody", "Service web", "NodePort", "spec", "type")
			if _, err := w.pass(t); (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
			if spec, _ := w.objects["Service web"]["spec"].(map[string]any); spec["type"] != "ClusterIP" {
				t.Error("the drift of the other object was not reverted")
			}
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

// Objects of a kind that is not served are not taken for removed from the spec. They are still
// in the inventory when the kind is served again.
func TestHeldOfAnUnservedKind(t *testing.T) {
	w := running(t, twoObjects, "")
	served := w.Kinds
	w.Kinds = without{served, "Deployment"}
	w.checkPass(t)
	w.checkHeld(t, true, "Deployment web", "ConfigMap config")
	w.checkReason(t, application.ReconciledCondition, "KindNotFound")
	w.Kinds = served
	w.mustReconcile(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
	w.checkSilentRestart(t)
}
