package apply_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

var errRefused = errors.New("refused")

// Create returns the object as the API server stores it. The agent learns from its defaults,
// and recognizes its event by UID and version.
func TestCreate(t *testing.T) {
	f := newFixture(t)
	live, err := f.Create(t.Context(), f.ref("a"), f.object("a"))
	kit.Must(t, err)
	check.Equal(t, "answer", f.get(t, "a"), live)
	check.Equal(t, "we are named as the one who set data", true, fieldsOf(t, live, ourselves)["f:data"] != nil)
}

// An existing object belongs to another owner until it is proved ours: it stays unchanged.
func TestCreateWhatExists(t *testing.T) {
	f := newFixture(t)
	f.create(t, "a")
	before := f.change(t, "a", `{"data": {"a": "theirs"}}`)

	_, err := f.Create(t.Context(), f.ref("a"), f.object("a"))
	check.Equal(t, check.Message(err)+": it exists already", true, apierrors.IsAlreadyExists(err))
	if want := fmt.Sprintf("create v1 ConfigMap %s/a: ", f.namespace); err != nil && !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %q does not begin with %q", err, want)
	}
	check.Equal(t, "object", before, f.get(t, "a"))
}

// A patch has only the given operations and the guard. All other fields stay with their
// managers.
func TestPatchTouchesItsFieldOnly(t *testing.T) {
	f := newFixture(t)
	f.create(t, "a")
	drifted := f.change(t, "a", `{"data": {"a": "2", "b": "2"}, "metadata": {"labels": {"team": "theirs"}}}`)
	after := f.patchA(t, drifted)
	want := besides(drifted)
	data(want)["a"] = "1"
	check.Equal(t, "object", want, besides(after))
	check.Equal(t, "answer", f.get(t, "a"), after)
	f.checkSent(t, request{http.MethodPatch, guarded(drifted, `{"op":"replace","path":"/data/a","value":"1"}`)})
	ours := map[string]any{"f:data": map[string]any{".": map[string]any{}, "f:a": map[string]any{}}}
	check.Equal(t, "what we own", ours, fieldsOf(t, after, ourselves))
	somebodys := map[string]any{
		"f:data":     map[string]any{"f:b": map[string]any{}},
		"f:metadata": map[string]any{"f:labels": map[string]any{".": map[string]any{}, "f:team": map[string]any{}}},
	}
	check.Equal(t, "what somebody owns", somebodys, fieldsOf(t, after, "somebody"))
}

// guarded returns the body of a patch that was made for this version of the object.
func guarded(live map[string]any, operations string) string {
	return fmt.Sprintf(`[{"op":"replace","path":"/metadata/resourceVersion","value":"%s"},%s]`, version(live), operations)
}

// A dry run changes nothing. An empty one tries the object itself.
func TestTryPatch(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	kit.Must(t, f.TryPatch(t.Context(), f.ref("a"), schema.Patch{{Op: "replace", Path: "/data/a", Value: "2"}}))
	kit.Must(t, f.TryPatch(t.Context(), f.ref("a"), nil))
	err := f.TryPatch(t.Context(), f.ref("a"), schema.Patch{{Op: "replace", Path: "/immutable", Value: "x"}})
	check.Equal(t, "an invalid patch is refused", true, err != nil)
	check.Equal(t, "object", live, f.get(t, "a"))
}

// The object has changed since it was read. The patch for its former state must not apply, and
// a new one is computed.
func TestPatchOfAStaleObject(t *testing.T) {
	f := newFixture(t)
	f.create(t, "a")
	stale := f.change(t, "a", `{"data": {"a": "2"}}`)
	newer := f.change(t, "a", `{"data": {"b": "theirs"}}`)
	after := f.patchA(t, stale)
	check.Equal(t, "data", map[string]any{"a": "1", "b": "theirs"}, data(after))
	const operation = `{"op":"replace","path":"/data/a","value":"1"}`
	f.checkSent(t,
		request{http.MethodPatch, guarded(stale, operation)},
		request{http.MethodPatch, guarded(newer, operation)})
}

// Another client writes at least as fast as the agent: Patch returns the conflict instead of
// trying without end.
func TestPatchGivesUp(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	calls := 0
	_, err := f.Patch(t.Context(), f.ref("a"), live, func(map[string]any) (schema.Patch, error) {
		calls++
		f.change(t, "a", fmt.Sprintf(`{"data": {"b": "%d"}}`, calls+1))
		return schema.Patch{{Op: "replace", Path: "/data/a", Value: "3"}}, nil
	})
	check.Equal(t, check.Message(err)+": it is a conflict", true, apierrors.IsConflict(err))
	check.Equal(t, "tries", 6, calls)
	check.Equal[any](t, "a, which a patch for another object may not change", "1", data(f.get(t, "a"))["a"])
}

// Another object has the name now. The patch was not made for it, and the repair function
// checks its owner.
func TestPatchOfARecreatedObject(t *testing.T) {
	f := newFixture(t)
	former := f.create(t, "a")
	another := f.recreate(t, "a")

	_, err := f.Patch(t.Context(), f.ref("a"), former, func(live map[string]any) (schema.Patch, error) {
		if uid(live) != uid(former) {
			return nil, errRefused
		}
		return schema.Patch{{Op: "replace", Path: "/data/a", Value: "3"}}, nil
	})
	check.Equal(t, check.Message(err)+": it is the error of repair", true, errors.Is(err, errRefused))
	check.Equal(t, "object", another, f.get(t, "a"))
}

// Only NotFound means absent, in a read and in a write.
func TestPatchOfAMissingObject(t *testing.T) {
	f := newFixture(t)
	seen := f.create(t, "a")
	f.change(t, "a", `{"data": {"a": "2"}}`)
	kit.Must(t, f.configMaps().Delete(t.Context(), "a", metav1.DeleteOptions{}))
	data(seen)["a"] = "2"
	for name, live := range map[string]map[string]any{"never seen": nil, "seen before": seen} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Patch(t.Context(), f.ref("a"), live, f.setA)
			check.Equal(t, check.Message(err)+": it does not exist", true, apierrors.IsNotFound(err))
		})
	}
}

// An object that must not be touched stays unchanged, and the error has the reason.
func TestPatchThatIsRefused(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	_, err := f.Patch(t.Context(), f.ref("a"), live, func(map[string]any) (schema.Patch, error) {
		return schema.Patch{{Op: "replace", Path: "/data/a", Value: "3"}}, errRefused
	})
	check.Equal(t, check.Message(err)+": it is the error of repair", true, errors.Is(err, errRefused))
	f.checkSent(t)
}
