package application

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// A clone is equal, and a change to it does not change the original.
func TestClone(t *testing.T) {
	app := complete()
	if path := firstZero(reflect.ValueOf(app).Elem(), "Application"); path != "" {
		t.Fatalf("%s is not set: what it has is not looked at here", path)
	}
	clone := app.Clone()
	if !reflect.DeepEqual(clone.Status, app.Status) || !reflect.DeepEqual(without(clone), without(app)) {
		t.Errorf("the clone is\n%+v, want\n%+v", clone, app)
	}
	shares(t, reflect.ValueOf(clone).Elem(), reflect.ValueOf(app).Elem(), "Application")
	if none := (&Application{}).Clone(); !reflect.DeepEqual(none, &Application{}) {
		t.Errorf("an empty one is cloned to %+v", none)
	}
}

// complete returns an Application in which every field is set, and no list is empty.
func complete() *Application {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	id := manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}
	shutdown := ShutdownRecord{State: StateWaiting, Attempt: 1, Deadline: now, Retry: "1", Asked: true, Message: "asked"}
	documents := []map[string]any{{"spec": map[string]any{"ports": []any{int64(80), 1.5, "x", true, nil}}}}
	return &Application{
		NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}, UID: "u", Version: "7", Cluster: "east", Holder: "east",
		OtherHolders: []string{"west"}, Elsewhere: map[string]ShutdownRecord{"west": shutdown}, ServiceAccount: "deployer", Deleted: true,
		Wishes: Wishes{
			Mode: Enforce, DeletionPolicy: Delete, DeletesAll: true, Adopt: true, HoldUntil: now.Time, DenyHolds: true, HeldBy: "anna", Guard: GuardDeny,
			Shutdown:   ShutdownWishes{GraceTime: new(time.Minute), Strategy: "s", Retries: new(2), Retry: "1"},
			ValuesFrom: []ValuesFrom{{Namespace: "vault", Name: "web", Source: "values"}},
			After:      []string{"definitions"},
		},
		Spec: Spec{
			Manifest: "m", ObserverSchema: "o", Tosca: "t", CSAR: "c", Fetched: "f",
			Hooks: Hooks{Complete: true, Shutdown: true, InitContainers: true, Application: "web", Namespace: "shop"},
		},
		Annotations: map[string]string{"krake.dev/application": "v1"},
		LastApplied: Publishing(documents), LastObserved: Publishing(documents), Mangled: documents, Learned: documents,
		Status: Status{
			Cluster: "east", Target: "t", Awaiting: "east", ObservedSpec: "d", State: StateRunning,
			Conditions: []metav1.Condition{{Type: ReadyCondition, Status: metav1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: now, Reason: "R", Message: "m"}},
			Objects: []ObjectStatus{{
				ID: id, Health: "Current", Reason: "Held", Message: "m", Fields: []string{"spec.ports"},
				Hold: &Hold{Until: now, Asked: "a", Since: now, Renewed: true}, Ended: &Ended{Manifest: "d", State: StateCompleted},
			}},
			Services:        map[string]string{"web": "10.0.0.1:80"},
			ContainerHealth: &ContainerHealth{DesiredPods: 1, RunningPods: 1, CompletedPods: 1, FailedPods: 1},
			Drifts: []Drift{{
				Object: id, Fields: []DriftedField{{Path: "spec.ports", Want: documents[0], Have: []any{documents[0]}, Removed: true}}, Manager: "kubectl", Subresource: "scale",
				Operation: "Update", Changed: &now, Seen: now, Repaired: "Reverted", After: &metav1.Duration{Duration: time.Second}, Count: 1,
			}},
		},
		Inventory: []manifest.ID{id}, Adopted: []manifest.ID{id},
		Hooks: HookRecord{Tokens: map[Hook]string{Complete: "d"}, Completed: true, Shutdown: &shutdown},
		Vouch: "v", Vouched: true, Damaged: map[string]error{StatusKey: errors.New("damaged")}, Finalized: true,
	}
}

// without omits the fields that hold functions, which are never equal.
func without(app *Application) Application {
	left := *app
	left.LastApplied, left.LastObserved = Published{}, Published{}
	return left
}

// isForeign reports types whose fields are not set here.
func isForeign(of reflect.Type) bool {
	switch of {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[time.Time](), reflect.TypeFor[Published](), reflect.TypeFor[error]():
		return true
	}
	return false
}

// firstZero returns the path of a field that is not set.
func firstZero(v reflect.Value, path string) string {
	if v.IsZero() && v.Kind() != reflect.Interface {
		return path
	}
	if isForeign(v.Type()) {
		return ""
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if zero := firstZero(v.Field(i), path+"."+v.Type().Field(i).Name); zero != "" {
				return zero
			}
		}
	case reflect.Pointer:
		return firstZero(v.Elem(), path)
	case reflect.Slice:
		if v.Len() == 0 {
			return path
		}
		return firstZero(v.Index(0), path+"[0]")
	}
	return ""
}

// shares fails if two values share something mutable.
func shares(t *testing.T, a, b reflect.Value, path string) {
	t.Helper()
	if isForeign(a.Type()) || path == "Application.Mangled" {
		return
	}
	if slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, a.Kind()) && a.Pointer() == b.Pointer() {
		t.Errorf("%s is shared", path)
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			shares(t, a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name)
		}
	case reflect.Interface:
		if !a.IsNil() {
			shares(t, a.Elem(), b.Elem(), path)
		}
	case reflect.Pointer:
		shares(t, a.Elem(), b.Elem(), path)
	case reflect.Slice:
		for i := range a.Len() {
			shares(t, a.Index(i), b.Index(i), path+"[]")
		}
	case reflect.Map:
		for _, key := range a.MapKeys() {
			shares(t, a.MapIndex(key), b.MapIndex(key), path+"[]")
		}
	}
}
