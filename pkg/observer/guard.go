package observer

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// errIncomparable is the error of a summary that == cannot compare.
var errIncomparable = errors.New("the summary cannot be compared")

// guarded does what looks at an object that anybody may have written. An object
// that makes it panic takes neither the process nor other objects along.
func (o *Observers) guarded(live *unstructured.Unstructured, do func()) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			id := manifest.ID{
				APIVersion: live.GetAPIVersion(), Kind: live.GetKind(), Namespace: live.GetNamespace(), Name: live.GetName(),
			}
			err = fmt.Errorf("look at %s: panic: %s", id, describe(cause))
			o.Logger.Error(err, "An object could not be looked at", "stack", string(debug.Stack()))
		}
	}()
	do()
	return nil
}

// describe says what a panic was about. A panic's own text may repeat a value of
// the object; those of the Go runtime name types and indices.
func describe(cause any) string {
	err, ok := cause.(error)
	if !ok {
		return fmt.Sprintf("%T", cause)
	}
	var ofRuntime runtime.Error
	switch {
	case errors.As(err, &ofRuntime):
		return ofRuntime.Error()
	case errors.Is(err, errIncomparable):
		return errIncomparable.Error()
	}
	return fmt.Sprintf("%T", cause)
}

// observe looks at an object on behalf of a target. Of one that differs, all is kept.
func (o *Observers) observe(target Target, live *unstructured.Unstructured, whole func() Whole, now time.Time) Observation {
	observation := Observation{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Seen: now}
	observation.Err = o.guarded(live, func() {
		if target.observe(live.Object, &observation) {
			observation.Live = whole()
		}
	})
	return observation
}

// summarise gives the summary of an object, which can be compared.
func (o *Observers) summarise(live *unstructured.Unstructured) (summary any, err error) {
	if o.Summarise == nil {
		return nil, nil
	}
	err = o.guarded(live, func() {
		made := o.Summarise(live.Object)
		if made != nil && !reflect.ValueOf(made).Comparable() {
			panic(errIncomparable)
		}
		summary = made
	})
	return summary, err
}

// ownerOf gives whom an object says it belongs to.
func (o *Observers) ownerOf(live *unstructured.Unstructured) (owner unique.Handle[Owner]) {
	if o.OwnerOf == nil {
		return owner
	}
	err := o.guarded(live, func() {
		if name, ok := o.OwnerOf(live.Object); ok {
			owner = unique.Make(name)
		}
	})
	if err != nil {
		return unique.Handle[Owner]{}
	}
	return owner
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
