package main

import (
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The busiest second may begin at any time.
func TestBusiest(t *testing.T) {
	var requests []kit.Request
	for _, at := range []time.Duration{0, 2000, 1300, 900, 1899, 3000} {
		requests = append(requests, kit.Request{Received: time.Unix(1_000_000, 0).Add(at * time.Millisecond)})
	}
	check.Equal(t, "in one second", 3, busiest(requests))
	check.Equal(t, "of none", 0, busiest(nil))
}

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
