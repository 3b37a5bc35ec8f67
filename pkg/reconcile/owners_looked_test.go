package reconcile_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// To look what an adoption would change is not to adopt: who decides against it
// has the object left as it is.
func TestAnAdoptionThatWasOnlyLookedAt(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.alien(nil)
	before := w.objects["ConfigMap config"]
	pass := func() {
		if _, err := w.pass(t); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	w.annotate(application.ModeAnnotation, application.Observe)
	w.annotate(application.AdoptAnnotation, true)
	pass()
	delete(w.cm.Annotations, application.ModeAnnotation)
	delete(w.cm.Annotations, application.AdoptAnnotation)
	pass()
	w.checkReason(t, application.ReconciledCondition, "AlreadyExists")
	if diff := cmp.Diff(before, w.objects["ConfigMap config"]); diff != "" {
		t.Errorf("the object (-before +after):\n%s", diff)
	}
}

// Anybody may write the name of an Application on objects in his namespace. It
// cannot have created them there, so it does not even look.
func TestStraysOutOfReach(t *testing.T) {
	w := running(t, oneObject, "")
	for i := range 50 {
		name := fmt.Sprint("theirs-", i)
		w.objects["ConfigMap "+name] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": name, "namespace": "elsewhere", "uid": name, "resourceVersion": "9",
			"annotations": map[string]any{application.OwnerAnnotation: "demo/app /ConfigMap/elsewhere/" + name, application.OwnerUIDAnnotation: "app-uid"},
		}}
	}
	w.checkQuiet(t)
	if len(w.objects) != 51 {
		t.Errorf("%d objects are left", len(w.objects))
	}
}
