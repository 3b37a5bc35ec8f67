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

// What was created is given as the API server has it: defaults, UID and
// version are needed to learn from it and to know its echo.
func TestCreate(t *testing.T) {
	f := newFixture(t)
	live, err := f.Create(t.Context(), f.ref("a"), f.object("a"))
	kit.Must(t, err)
	check.Equal(t, "answer", f.get(t, "a"), live)
	if fields := fieldsOf(t, live, ourselves); fields["f:data"] == nil {
		t.Errorf("we are not named as the one who set data: %v", fields)
	}
}

// An object that is there already is another one's until it is proved ours:
// nothing of it changes.
func TestCreateWhatExists(t *testing.T) {
	f := newFixture(t)
	f.create(t, "a")
	before := f.change(t, "a", `{"data": {"a": "theirs"}}`)

	_, err := f.Create(t.Context(), f.ref("a"), f.object("a"))
	if !apierrors.IsAlreadyExists(err) {
		t.Errorf("error is %v, want AlreadyExists", err)
	}
	if want := fmt.Sprintf("create v1 ConfigMap %s/a: ", f.namespace); err != nil && !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %q does not begin with %q", err, want)
	}
	check.Equal(t, "object", before, f.get(t, "a"))
}

// A drift is reverted by what was given and the guard, and by nothing else: all
// other fields stay with those who set them.
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

// guarded is the body of a patch that was made for this version of the object.
func guarded(live map[string]any, operations string) string {
	return fmt.Sprintf(`[{"op":"replace","path":"/metadata/resourceVersion","value":"%s"},%s]`, version(live), operations)
}

// The object has changed since it was seen: the patch, made for the former
// state, must not hit, and is made anew for the present one.
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

// Healed meanwhile by somebody else: the second look finds nothing to do.
func TestPatchOfAStaleObjectThatIsHealed(t *testing.T) {
	f := newFixture(t)
	f.create(t, "a")
	stale := f.change(t, "a", `{"data": {"a": "2"}}`)
	healed := f.change(t, "a", `{"data": {"a": "1"}}`)
	after := f.patchA(t, stale)
	check.Equal(t, "object", healed, after)
}

// Somebody writes at least as fast as we do: the conflict is told, instead of
// trying for ever.
func TestPatchGivesUp(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	calls := 0
	_, err := f.Patch(t.Context(), f.ref("a"), live, func(map[string]any) (schema.Patch, error) {
		calls++
		f.change(t, "a", fmt.Sprintf(`{"data": {"b": "%d"}}`, calls+1))
		return schema.Patch{{Op: "replace", Path: "/data/a", Value: "3"}}, nil
	})
	if !apierrors.IsConflict(err) {
		t.Errorf("error is %v, want a conflict", err)
	}
	if calls != 6 {
		t.Errorf("%d tries, want 6", calls)
	}
	if got := data(f.get(t, "a"))["a"]; got != "1" {
		t.Errorf("a is %v: a patch has hit an object that it was not made for", got)
	}
}

// Another object has the name now: the patch was not made for it, and repair
// gets to see whose it is.
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
	if !errors.Is(err, errRefused) {
		t.Errorf("error is %v, want that of repair", err)
	}
	check.Equal(t, "object", another, f.get(t, "a"))
}

// What was never seen is read before it is judged.
func TestPatchReads(t *testing.T) {
	f := newFixture(t)
	f.create(t, "a")
	f.change(t, "a", `{"data": {"a": "2"}}`)
	after := f.patchA(t, nil)
	if f.repairs != 1 || data(after)["a"] != "1" {
		t.Errorf("%d looks, data is %v", f.repairs, data(after))
	}
}

// An object that is as it should be is left alone: not even an empty patch.
func TestPatchOfNothing(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	after := f.patchA(t, live)
	f.checkSent(t)
	check.Equal(t, "object", live, after)
}

// Only NotFound means absent, whether it is found by reading or by writing.
func TestPatchOfAMissingObject(t *testing.T) {
	f := newFixture(t)
	seen := f.create(t, "a")
	f.change(t, "a", `{"data": {"a": "2"}}`)
	kit.Must(t, f.configMaps().Delete(t.Context(), "a", metav1.DeleteOptions{}))
	data(seen)["a"] = "2"
	for name, live := range map[string]map[string]any{"never seen": nil, "seen before": seen} {
		t.Run(name, func(t *testing.T) {
			if _, err := f.Patch(t.Context(), f.ref("a"), live, f.setA); !apierrors.IsNotFound(err) {
				t.Errorf("error is %v, want NotFound", err)
			}
		})
	}
}

// An object that must not be touched is not touched, and the reason is told.
func TestPatchThatIsRefused(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	_, err := f.Patch(t.Context(), f.ref("a"), live, func(map[string]any) (schema.Patch, error) {
		return schema.Patch{{Op: "replace", Path: "/data/a", Value: "3"}}, errRefused
	})
	if !errors.Is(err, errRefused) {
		t.Errorf("error is %v, want that of repair", err)
	}
	f.checkSent(t)
}

// A patch that the server refuses leaves the object as it was, and says so.
func TestPatchThatIsInvalid(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	_, err := f.Patch(t.Context(), f.ref("a"), live, func(map[string]any) (schema.Patch, error) {
		return schema.Patch{{Op: "replace", Path: "/data/a", Value: "3"}, {Op: "replace", Path: "/data/a b", Value: "3"}}, nil
	})
	if err == nil || apierrors.IsConflict(err) {
		t.Errorf("error is %v, want a refusal", err)
	}
	check.Equal(t, "object", live, f.get(t, "a"))
}
