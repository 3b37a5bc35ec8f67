package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/internal/apply"
	"github.com/krake-observer/krake-observer/test/check"
)

// only is the proof of one object: another one of the same name has another UID.
func only(object map[string]any) apply.Proof {
	return func(live map[string]any) error {
		if uid(live) != uid(object) {
			return errRefused
		}
		return nil
	}
}

// A proved object is deleted in exactly this version. Its dependents are deleted in the
// background.
func TestDelete(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	f.mustDelete(t, f.ref("a"), only(live))
	check.Equal(t, "object", nil, f.get(t, "a"))
	f.checkSent(t, request{http.MethodDelete, fmt.Sprintf(
		`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"%s","resourceVersion":"%s"},"propagationPolicy":"Background"}`,
		uid(live), version(live))})
}

// Without proof nothing is deleted, whatever an inventory says.
func TestDeleteThatIsRefused(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	left, err := f.Delete(t.Context(), f.ref("a"), func(map[string]any) error { return errRefused })
	if left == nil || !errors.Is(err, errRefused) {
		t.Errorf("left is %v, error %v, want that of the proof", left, err)
	}
	f.checkSent(t)
	check.Equal(t, "object", live, f.get(t, "a"))
}

// Between proof and deletion, another client replaces the proved object. The new object is not
// deleted, and needs a proof of its own.
func TestDeleteOfARecreatedObject(t *testing.T) {
	f := newFixture(t)
	former := f.create(t, "a")
	var another map[string]any
	left, err := f.Delete(t.Context(), f.ref("a"), func(live map[string]any) error {
		refused := only(former)(live)
		if another == nil {
			another = f.recreate(t, "a")
		}
		return refused
	})
	if left == nil || !errors.Is(err, errRefused) {
		t.Errorf("left is %v, error %v, want that of the proof", left, err)
	}
	check.Equal(t, "the other object", another, f.get(t, "a"))
}

// Another object takes the name at once: the deleted object counts as gone.
func TestDeleteOfAnObjectThatIsReplaced(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	f.answered = func() {
		f.answered = nil
		another := &unstructured.Unstructured{Object: f.object("a")}
		_, err := f.configMaps().Create(t.Context(), another, metav1.CreateOptions{})
		check.Fails(t, "creation", err, "")
	}
	f.mustDelete(t, f.ref("a"), only(live))
	if now := f.get(t, "a"); now == nil || uid(now) == uid(live) {
		t.Errorf("there is %v", now)
	}
}

// An object that loses its proof between proof and deletion is not deleted: the proof was for
// the former version.
func TestDeleteOfAChangedObject(t *testing.T) {
	f := newFixture(t)
	f.create(t, "a")
	proofs := 0
	left, err := f.Delete(t.Context(), f.ref("a"), func(live map[string]any) error {
		proofs++
		if data(live)["a"] != "1" {
			return errRefused
		}
		f.change(t, "a", `{"data": {"a": "theirs"}}`)
		return nil
	})
	if left == nil || !errors.Is(err, errRefused) || proofs != 2 {
		t.Errorf("left is %v, error %v after %d proofs, want the refusal of the second", left, err, proofs)
	}
	check.Equal(t, "the object is there", true, f.get(t, "a") != nil)
}

// A finalizer blocks the deletion. The object is not gone, and each further call reports that,
// until the finalizer is removed.
func TestDeleteOfAFinalizedObject(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	f.change(t, "a", `{"metadata": {"finalizers": ["example.com/keep"]}}`)
	for try := range 2 {
		if left, err := f.Delete(t.Context(), f.ref("a"), only(live)); err != nil || left == nil {
			t.Errorf("try %d: left is %v, error %v", try, left, err)
		}
	}
	check.Equal(t, "deletions that were sent", 1, len(f.sent))
	f.change(t, "a", `{"metadata": {"finalizers": null}}`)
	f.mustDelete(t, f.ref("a"), only(live))
}

// An object that cannot be read is not gone: only NotFound means absent.
func TestDeleteOfAnObjectThatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "a")
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := f.Delete(ended, f.ref("a"), only(live))
	check.Fails(t, "deletion", err, "context canceled")
}
