package hub

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// readable returns an Application with a status.
func readable(version string, state application.State) *corev1.ConfigMap {
	cm := kit.Application("demo", "web", "[]", kit.Data(application.StatusKey,
		`{"state": "`+string(state)+`", "conditions": [{"type": "Ready", "status": "True"}]}`))
	cm.UID, cm.ResourceVersion = "u", version
	return cm
}

// A repeated read returns an equal Application, which belongs to the reader.
func TestReadings(t *testing.T) {
	r := newReadings("local")
	read := func(cm *corev1.ConfigMap) *application.Application {
		t.Helper()
		app, err := r.of(cm)
		kit.Must(t, err)
		return app
	}
	cm := readable("7", application.StateRunning)
	want, err := application.ReadFor(cm, "local")
	kit.Must(t, err)
	for range 3 {
		app := read(cm)
		if diff := cmp.Diff(want, app, cmp.AllowUnexported(application.Published{})); diff != "" {
			t.Fatalf("read otherwise (-want +got):\n%s", diff)
		}
		app.Status.State, app.Status.Conditions[0].Type, app.Inventory = application.StateFailed, "Changed", nil
	}
	other := readable("7", application.StateDegraded)
	other.UID = "another"
	for _, cm := range []*corev1.ConfigMap{readable("8", application.StateDegraded), other} {
		if got := read(cm).Status.State; got != application.StateDegraded {
			t.Errorf("version %s of %s is %s, want what it says", cm.ResourceVersion, cm.UID, got)
		}
	}
}

// An Application without a version, or a large one, is not cached. A ConfigMap that is none of
// our Applications is reported each time.
func TestReadingsLeaveOut(t *testing.T) {
	large := readable("7", application.StateRunning)
	large.Data["theirs"] = strings.Repeat("x", maxReading)
	foreign := readable("7", application.StateRunning)
	foreign.Annotations[application.FormatAnnotation] = "v9"
	for name, cm := range map[string]*corev1.ConfigMap{"no version": readable("", application.StateRunning), "large": large, "of another format": foreign} {
		r := newReadings("local")
		for range 2 {
			_, err := r.of(cm)
			if refused := cm == foreign; (err != nil) != refused {
				t.Errorf("%s: %v", name, err)
			}
		}
		if kept := r.lately.Len(); kept != 0 {
			t.Errorf("%s: %d are kept, want none", name, kept)
		}
	}
}
