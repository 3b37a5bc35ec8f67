package observer

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// errIncomparable is the error of a summary that == cannot compare.
var errIncomparable = errors.New("the summary cannot be compared")

// inspector runs the caller's code and the comparison on objects that any user may have written. An
// object that causes a panic is an error only of its own targets.
type inspector struct{ options *Options }

// guard calls do and returns its panic as an error.
func (i *inspector) guard(live *unstructured.Unstructured, do func()) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			id := manifest.ID{
				APIVersion: live.GetAPIVersion(), Kind: live.GetKind(), Namespace: live.GetNamespace(), Name: live.GetName(),
			}
			err = fmt.Errorf("inspect %s: panic: %s", id, describe(cause))
			i.options.Logger.Error(err, "An object could not be inspected", "stack", string(debug.Stack()))
		}
	}()
	do()
	return nil
}

// describe names the cause of a panic without values of the object, which may be secrets. A panic
// of the Go runtime names types and indices, but any other may repeat a value.
func describe(cause any) string {
	err, _ := cause.(error)
	if ofRuntime, ok := errors.AsType[runtime.Error](err); ok {
		return ofRuntime.Error()
	}
	if errors.Is(err, errIncomparable) {
		return errIncomparable.Error()
	}
	return fmt.Sprintf("%T", cause)
}

// summarise returns the summary of an object, which == can compare.
func (i *inspector) summarise(live *unstructured.Unstructured) (summary any, err error) {
	if i.options.Summarise == nil {
		return nil, nil
	}
	err = i.guard(live, func() {
		made := i.options.Summarise(live.Object)
		if made != nil && !reflect.ValueOf(made).Comparable() {
			panic(errIncomparable)
		}
		summary = made
	})
	return summary, err
}

// ownerOf returns the owner that an object names.
func (i *inspector) ownerOf(live *unstructured.Unstructured) (owner unique.Handle[Owner]) {
	if i.options.OwnerOf == nil {
		return owner
	}
	_ = i.guard(live, func() { // it logs the error, with which the object names no owner
		if name, ok := i.options.OwnerOf(live.Object); ok {
			owner = unique.Make(name)
		}
	})
	return owner
}
