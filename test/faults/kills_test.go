package faults

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/faults/results"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Threat A41 of the security specification: any fault at any call of an agent. The Application becomes what
// its spec says, nothing remains, and no foreign object is touched. make test tries a few points, make
// verify all crash points of one scenario and a sample of the other faults, make faults all.
func TestKilledAgentLeavesNothingOver(t *testing.T) {
	t.Parallel()
	some := 142
	lanes := newLanes(t, "a41", byTier(4, 6))
	calls := callsOf(t, lanes, scenarios)
	for round := range rounds(t) {
		crashes, faults := sweep("crash points", scenarios, killing(t), calls), sweep("API faults", scenarios, failing(), calls)
		if !isThorough() {
			crashes = slices.DeleteFunc(crashes, func(each *tale) bool { return each.Scenario != "shrink" })
			if testing.Short() {
				crashes, some = sample(chance(results.Point{Block: "crash points"}), crashes, 6), 6
			}
			faults = sample(chance(results.Point{Block: "API faults"}), faults, some)
		}
		playTales(t, lanes, remaining(inRound(round+1, append(crashes, faults...))))
	}
}

// Threat A41, when an answer never comes: the agent must stop waiting, which takes long,
// and costs nothing else.
func TestAnswersThatNeverComeCostNothing(t *testing.T) {
	kit.Long(t, "the agent waits for answers that never come")
	t.Parallel()
	lanes := newLanes(t, "a41-never", byTier(8, 16))
	tales := sweep("API faults", scenarios, []mode{muted}, callsOf(t, lanes, scenarios))
	playTales(t, lanes, remaining(sample(chance(results.Point{Block: "never answered"}), tales, byTier(8, 1000))))
}

// Another client is faster than the agent, at each of its writes.
func TestOvertaken(t *testing.T) {
	kit.Long(t, "a sweep of overtaken writes")
	t.Parallel()
	lanes := newLanes(t, "overtaken", 4)
	of := []scenario{named("create"), named("update"), named("shrink"), named("delete")}
	tales := sweep("somebody is faster", of, overtaking(t), callsOf(t, lanes, of))
	if !isThorough() {
		tales = sample(chance(results.Point{Block: "somebody is faster"}), tales, 20)
	}
	playTales(t, lanes, remaining(tales))
}

// Two faults in the life of one Application.
func TestDoubleFaults(t *testing.T) {
	kit.Long(t, "a sweep of pairs of faults")
	t.Parallel()
	lanes := newLanes(t, "double", 4)
	calls := callsOf(t, lanes, scenarios)
	var tales []*tale
	const enough = 2250 // one in ten ends before its second fault
	for number := range chances(10, enough) {
		tales = append(tales, doubled(number+1, calls, append(killing(t), failing()...)))
	}
	playTales(t, lanes, remaining(tales))
}

// Several users, two agents and two Applications at once.
func TestRaces(t *testing.T) {
	kit.Long(t, "a sweep of races")
	t.Parallel()
	lanes := newLanes(t, "races", 4)
	var tales []*tale
	for number := range chances(100, 2000) {
		tales = append(tales, raced(t, number+1))
	}
	playTales(t, lanes, remaining(tales))
}

// Threat A41, for calls that have no number: Events, the discovery of a new
// agent, and its watches.
func TestFaultsAtUnnumberedCallsLeaveNothingOver(t *testing.T) {
	kit.Long(t, "a sweep of crash points")
	t.Parallel()
	lanes := newLanes(t, "a41-beside", 4)
	var tales []*tale
	for _, m := range append(killing(t), failing()...) {
		for _, each := range []struct {
			name  string
			is    func(proxy.Call) bool
			fresh bool
		}{
			{"an Event", proxy.Call.IsEvent, false},
			{"discovery", proxy.Call.IsDiscovery, true},
			{"a watch", func(call proxy.Call) bool { return call.Verb == "watch" }, true},
		} {
			tales = append(tales, m.atFirst(troubled, each.name, each.is, each.fresh))
		}
	}
	playTales(t, lanes, remaining(tales))
}

// atFirst returns the tale in which the first chosen call meets the fault.
func (m mode) atFirst(s scenario, name string, chosen func(proxy.Call) bool, fresh bool) *tale {
	met := &atomic.Bool{}
	return &tale{
		Point: results.Point{Block: "beside the numbers", Scenario: s.name, Mode: m.name, Place: name, Round: 1},
		hold:  m.hold, fresh: fresh, scenario: s, met: met.Load,
		call: func(a *app, by *agent, _ int, call proxy.Call) *proxy.Fault {
			if !chosen(call) || met.Swap(true) {
				return nil
			}
			return m.fault(a, by, call)
		},
	}
}

// String returns "210 tales, ..., by block".
func (c *tally) String() string {
	return fmt.Sprintf("%d tales, of which something went wrong in %d, and %d ended otherwise than they should", c.played, c.met, c.wrong)
}
