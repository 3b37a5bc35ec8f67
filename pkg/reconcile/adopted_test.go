package reconcile_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Another version of its API serves the same object: it was adopted all the same,
// and stays.
func TestAdoptedInAnotherVersion(t *testing.T) {
	w := newWorld(t, `{apiVersion: apps/v1beta2, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}`, "")
	w.objects["Deployment web"] = map[string]any{
		"apiVersion": "apps/v1beta2", "kind": "Deployment", "spec": map[string]any{"replicas": int64(1)},
		"metadata": map[string]any{"name": "web", "namespace": "demo", "uid": "theirs", "resourceVersion": "1"},
	}
	w.annotate(application.AdoptAnnotation, true)
	pass := func() {
		if _, err := w.pass(t); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	w.respec(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}`, "")
	w.objects["Deployment web"]["apiVersion"] = "apps/v1" // as that version serves it
	pass()
	deleted(w)
	pass()
	if w.objects["Deployment web"] == nil {
		t.Error("it was deleted")
	}
}

// As long as an adoption cannot be written down, there is none: who crashed after
// it would delete what was somebody else's.
func TestNoAdoptionWithoutARecord(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.alien(nil)
	w.mustWait(t)
	w.annotate(application.AdoptAnnotation, true)
	w.failures["Write inventory.local"] = apierrors.NewServiceUnavailable("not now")
	for range 3 {
		if _, err := w.pass(t); err == nil {
			t.Error("no error")
		}
		for _, call := range w.touches() {
			if call != "Create ConfigMap config" { // refused, as it exists
				t.Errorf("written without a record: %s", call)
			}
		}
	}
}

// mustWait is a pass after which somebody else has to do something.
func (w *world) mustWait(t *testing.T) {
	t.Helper()
	if _, err := w.pass(t); err != nil {
		t.Fatal(err)
	}
}
