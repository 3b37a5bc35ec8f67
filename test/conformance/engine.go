package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

// engine is an implementation of the functions that vectors name.
type engine interface {
	// offered has the names of the functions.
	offered() []string
	// call runs a function. An error that wraps [errBroken] ends the run; any other one is the
	// function's result.
	call(name string, input map[string]any) (map[string]any, error)
}

var (
	errBroken       = errors.New("the implementation does not follow the protocol")
	errInputChanged = errors.New("the function changes its input")
)

// ours is the engine of this repository.
type ours struct {
	functions map[string]function
	// semantic: values are compared by their meaning in the API, see [refine].
	semantic bool
}

func (o ours) offered() []string { return slices.Sorted(maps.Keys(o.functions)) }

// call checks also that the function does not change its input.
func (o ours) call(name string, input map[string]any) (map[string]any, error) {
	f, known := o.functions[name]
	if !known {
		return nil, fmt.Errorf("unknown function %s", name)
	}
	before := runtime.DeepCopyJSON(input)
	s := newState(input)
	s.semantic = o.semantic
	got, err := f(s)
	if diff := cmp.Diff(before, input); diff != "" {
		return nil, fmt.Errorf("%w (-before +after)\n%s", errInputChanged, diff)
	}
	return got, err
}
