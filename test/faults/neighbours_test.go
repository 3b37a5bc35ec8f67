package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/faults/checker"
	"github.com/krake-observer/krake-observer/test/faults/results"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Some Applications cannot be carried out, each for another reason: the agent tries at
// a limited rate. Their neighbours are repaired as fast as others. The release tier
// measures that, because it needs many repairs and an idle machine.
func TestNeighbours(t *testing.T) {
	kit.Long(t, "it measures waits")
	t.Parallel()
	good, repairs, stall := byTier(5, 20), byTier(3, 20), 20*time.Second
	alone, beside := newLane(t, "alone", "--namespaces", "alone"), newLane(t, "beside", "--namespaces", "beside")
	poisons := beside.newApps(3)
	kit.Must(t, creates("configmap one", refusedService)(t.Context(), poisons[0]))
	kit.Must(t, creates("configmap one", "song one")(t.Context(), poisons[1])) // of a kind that is never defined
	kit.Must(t, finds("service 70")(t.Context(), poisons[2]))
	kit.Must(t, creates("configmap one", "service 80")(t.Context(), poisons[2]))
	kit.Must(t, beside.await(t.Context(), standing(poisons)))
	from := time.Now().Add(late)

	apps := append(alone.newApps(good), beside.newApps(good)...)
	kit.Must(t, each(apps, func(a *app) error { return creates("configmap one", "service 80")(t.Context(), a) }))
	for n := range repairs {
		kit.Must(t, eventually(t.Context(), standing(apps)))
		kit.Must(t, each(apps, func(a *app) error { return drifts(fmt.Sprintf("service %d", 1000+n))(t.Context(), a) }))
	}
	kit.Must(t, eventually(t.Context(), standing(apps)))
	kit.Must(t, sleep(t.Context(), time.Until(from.Add(stall))))
	for _, a := range poisons {
		beside.stalls = append(beside.stalls, checker.Stall{Window: checker.Window{From: from, Until: time.Now()}, App: a.NamespacedName})
	}
	if isThorough() {
		var err error
		beside.waits, err = waits(alone, beside)
		kit.Must(t, err)
	}
	for _, a := range apps {
		a.lane.settled[a.NamespacedName] = time.Now().Add(late)
	}
	violations, err := beside.closeBatch(t.Context(), toldOf(append(poisons, apps[good:]...)))
	kit.Must(t, err)
	for _, violation := range violations {
		t.Error(violation)
	}
	if isRelease() {
		point := results.Point{Block: "isolation", Scenario: "20 Applications", Mode: "three that cannot be carried out", Round: 1}
		record := recordOf(point, true, time.Since(from), violations)
		kit.Must(t, env.results.Add(&record))
	}
}

// waits returns how long the repairs in both lanes took.
func waits(alone, beside *lane) (checker.Waits, error) {
	untroubled, err := alone.audit.FindNaming(naming(alone.namespace))
	if err != nil {
		return checker.Waits{}, err
	}
	troubled, err := beside.audit.FindNaming(naming(beside.namespace))
	return checker.Waits{Untroubled: checker.Repairs(untroubled), Troubled: checker.Repairs(troubled)}, err
}
