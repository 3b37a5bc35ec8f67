package apply_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

var errRefused = errors.New("refused")

// What was created is given as the API server has it: defaults, UID and
// version are needed to learn from it and to know its echo.
func TestCreate(t *testing.T) {
	f := newFixture(t)
	live, err := f.Create(t.Context(), f.ref("a"), f.object("a"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.get(t, "a"), live); diff != "" {
		t.Errorf("answer (-stored +got):\n%s", diff)
	}
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
	if diff := cmp.Diff(before, f.get(t, "a")); diff != "" {
		t.Errorf("object (-before +after):\n%s", diff)
	}
}

// A drift is reverted by what was given and the guard, and by nothing else: all
// other fields stay with those who set them.
func TestPatchTouchesItsFieldOnly(t *testing.T) {
	f := newFixture(t)
	f.create(t, "a")
	drifted := f.change(t, "a", `{"data": {"a": "2", "b": "2"}, "metadata": {"labels": {"team": "theirs"}}}`)
	calls := 0

	after, err := f.Patch(t.Context(), f.ref("a"), drifted, setA(&calls))
	if err != nil {
		t.Fatal(err)
	}
	want := besides(drifted)
	data(want)["a"] = "1"
	if diff := cmp.Diff(want, besides(after)); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(f.get(t, "a"), after); diff != "" {
		t.Errorf("answer (-stored +got):\n%s", diff)
	}
	f.checkSent(t, request{http.MethodPatch, guarded(drifted, `{"op":"replace","path":"/data/a","value":"1"}`)})
	ours := map[string]any{"f:data": map[string]any{".": map[string]any{}, "f:a": map[string]any{}}}
	if diff := cmp.Diff(ours, fieldsOf(t, after, ourselves)); diff != "" {
		t.Errorf("what we own (-want +got):\n%s", diff)
	}
	somebodys := map[string]any{
		"f:data":     map[string]any{"f:b": map[string]any{}},
		"f:metadata": map[string]any{"f:labels": map[string]any{".": map[string]any{}, "f:team": map[string]any{}}},
	}
	if diff := cmp.Diff(somebodys, fieldsOf(t, after, "somebody")); diff != "" {
		t.Errorf("what somebody owns (-want +got):\n%s", diff)
	}
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
	calls := 0

	after, err := f.Patch(t.Context(), f.ref("a"), stale, setA(&calls))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": "1", "b": "theirs"}, data(after)); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
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
	calls := 0

	after, err := f.Patch(t.Context(), f.ref("a"), stale, setA(&calls))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(healed, after); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
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
	if diff := cmp.Diff(another, f.get(t, "a")); diff != "" {
		t.Errorf("object (-before +after):\n%s", diff)
	}
}

// What was never seen is read before it is judged.
func TestPatchReads(t *testing.T) {
	f := newFixture(t)
	f.create(t, "a")
	f.change(t, "a", `{"data": {"a": "2"}}`)
	calls := 0
	after, err := f.Patch(t.Context(), f.ref("a"), nil, setA(&calls))
	if err != nil {
		t.Fatal(err)
	}
	if calls != 1 || data(after)["a"] != "1" {
		t.Errorf("%d looks, data is %v", calls, data(after))
	}
}

// An object that is as it should be is left alone: not even an empty patch.
func TestPatchOfNothing(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	calls := 0
	after, err := f.Patch(t.Context(), f.ref("a"), live, setA(&calls))
	if err != nil {
		t.Fatal(err)
	}
	f.checkSent(t)
	if diff := cmp.Diff(live, after); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

// Only NotFound means absent, whether it is found by reading or by writing.
func TestPatchOfAMissingObject(t *testing.T) {
	f := newFixture(t)
	seen := f.create(t, "a")
	f.change(t, "a", `{"data": {"a": "2"}}`)
	if err := f.somebody.Resource(f.ref("a").Resource).Namespace(f.namespace).Delete(t.Context(), "a", deleteNow()); err != nil {
		t.Fatal(err)
	}
	data(seen)["a"] = "2"
	for name, live := range map[string]map[string]any{"never seen": nil, "seen before": seen} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			if _, err := f.Patch(t.Context(), f.ref("a"), live, setA(&calls)); !apierrors.IsNotFound(err) {
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
	if diff := cmp.Diff(live, f.get(t, "a")); diff != "" {
		t.Errorf("object (-before +after):\n%s", diff)
	}
}
