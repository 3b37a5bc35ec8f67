package health_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/internal/health"
	"github.com/krake-observer/krake-observer/test/check"
)

func TestRollUp(t *testing.T) {
	type rolledUp struct {
		State     health.State
		Pods      health.Pods
		Workloads bool
	}
	runs := func(state health.State, pods health.Pods) health.Health {
		return health.Health{Workload: true, State: state, Pods: pods}
	}
	is := func(state health.State) health.Health { return health.Health{State: state} }
	none := health.Pods{}
	cases := []struct {
		why  string
		all  []health.Health
		want rolledUp
	}{
		{"nothing cannot fail", nil, rolledUp{State: health.StateRunning}},
		{"what runs nothing is not completed", []health.Health{is(health.StateRunning)}, rolledUp{State: health.StateRunning}},
		{"counts are summed up: in Krake the last one wins",
			[]health.Health{runs(health.StateRunning, health.Pods{Desired: 3, Running: 3}), runs(health.StateRunning, health.Pods{Desired: 5, Running: 1, Completed: 2, Failed: 4})},
			rolledUp{health.StateRunning, health.Pods{Desired: 8, Running: 4, Completed: 2, Failed: 4}, true}},
		{"restarting is worse than running",
			[]health.Health{runs(health.StateRestarting, none), runs(health.StateRunning, none)}, rolledUp{health.StateRestarting, none, true}},
		{"degraded is worse than restarting",
			[]health.Health{runs(health.StateRestarting, none), runs(health.StateDegraded, none)}, rolledUp{health.StateDegraded, none, true}},
		{"failed is worse than degraded",
			[]health.Health{runs(health.StateDegraded, none), runs(health.StateFailed, none), runs(health.StateCompleted, none)}, rolledUp{health.StateFailed, none, true}},
		{"all that runs is completed, and the ConfigMap does not matter",
			[]health.Health{is(health.StateRunning), runs(health.StateCompleted, none), runs(health.StateCompleted, none)}, rolledUp{health.StateCompleted, none, true}},
		{"one of two is completed",
			[]health.Health{runs(health.StateCompleted, none), runs(health.StateRunning, none)}, rolledUp{health.StateRunning, none, true}},
		{"a claim that waits matters",
			[]health.Health{runs(health.StateCompleted, none), is(health.StateDegraded)}, rolledUp{health.StateDegraded, none, true}},
		{"an object that is not there tells nothing",
			[]health.Health{{}, runs(health.StateCompleted, none)}, rolledUp{health.StateCompleted, none, true}},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			var got rolledUp
			got.State, got.Pods, got.Workloads = health.RollUp(c.all)
			check.Equal(t, "all of them", c.want, got)
		})
	}
}
