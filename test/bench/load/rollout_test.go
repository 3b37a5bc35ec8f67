package main

import (
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

// The counts of a rollout go from those of the former Pods to those of the new ones, and each
// report changes something.
func TestStepsOfARollout(t *testing.T) {
	all := steps()
	check.Equal(t, "the last one", done, all[len(all)-1])
	for i := range all[1:] {
		if all[i] == all[i+1] {
			t.Errorf("step %d changes nothing: %+v", i+1, all[i])
		}
	}
}
