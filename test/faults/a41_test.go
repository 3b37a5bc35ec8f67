package faults

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/krake-observer/krake-observer/test/faults/proxy"
)

// mode is a way in which a call goes wrong.
type mode struct {
	name  string
	fault func(*lane) *proxy.Fault
	// hold: the agent stays down until the user has made the next step.
	hold bool
}

// modes are all of them. A crash that is over before the user goes on proves
// little: what the agent did not write down it finds out again. What it has done
// and not written down, and nobody wants any more when it is back, is what leaks.
func modes(t *testing.T) []mode {
	kill := func(l *lane) func() {
		return func() {
			if err := l.agent.kill(); err != nil {
				t.Error(err)
			}
		}
	}
	after := func(l *lane) *proxy.Fault { return &proxy.Fault{Sent: true, Do: kill(l)} }
	all := []mode{
		{name: "killed after the call, and held", fault: after, hold: true},
		{name: "killed after the call", fault: after},
		{name: "killed before the call", fault: func(l *lane) *proxy.Fault { return &proxy.Fault{Do: kill(l)} }},
		{name: "cut after the call", fault: func(*lane) *proxy.Fault { return &proxy.Fault{Sent: true} }},
		{name: "timed out, and yet done", fault: func(*lane) *proxy.Fault {
			return &proxy.Fault{Sent: true, Answer: http.StatusGatewayTimeout}
		}},
	}
	for _, code := range []int{
		http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusConflict,
		http.StatusTooManyRequests, http.StatusForbidden,
	} {
		all = append(all, mode{name: fmt.Sprint(code), fault: func(*lane) *proxy.Fault { return &proxy.Fault{Answer: code} }})
	}
	return all
}

// at is the trial in which the first call that is chosen goes wrong.
func (m mode) at(name string, chosen func(proxy.Call) bool) trial {
	met := &atomic.Bool{}
	return trial{
		name: m.name + ", at " + name, hold: m.hold, steps: (*app).lifecycle, met: met.Load,
		call: func(l *lane, _ *app, call proxy.Call) *proxy.Fault {
			if !chosen(call) || met.Swap(true) {
				return nil
			}
			return m.fault(l)
		},
	}
}

// ofANewAgent is the trial with an agent that starts with it.
func (t trial) ofANewAgent() trial {
	t.fresh = true
	return t
}

// untroubled is the life of an Application in which nothing goes wrong.
func untroubled(steps func(*app) []step) trial {
	return trial{name: "nothing goes wrong", steps: steps, met: func() bool { return false }}
}

// Whatever goes wrong at whichever call of the agent's, the Application becomes
// what its spec says, nothing is left over, and nobody else's object is touched.
func TestA41(t *testing.T) {
	lanes := newLanes(t, "a41")
	calls := 0
	for _, l := range lanes {
		if err := l.play(t.Context(), untroubled((*app).lifecycle)); err != nil {
			t.Fatalf("without any fault: %v", err)
		}
		calls = max(calls, l.proxy.Numbers())
	}
	var trials []trial
	for _, m := range modes(t) {
		for number := 1; number <= calls; number++ {
			trials = append(trials, m.at(fmt.Sprintf("call %d", number), func(call proxy.Call) bool { return call.Number == number }))
		}
	}
	t.Logf("each of %d calls in %d ways", calls, len(modes(t)))
	playAll(t, lanes, trials)
}

// The same for what is not numbered: an Event; and what an agent asks for when it
// is new, the question what is served and the watches.
func TestA41BesideTheNumbers(t *testing.T) {
	lanes := newLanes(t, "a41-beside")
	watch := func(call proxy.Call) bool { return call.Verb == "watch" }
	var trials []trial
	for _, m := range modes(t) {
		trials = append(trials,
			m.at("an Event", proxy.Call.IsEvent),
			m.at("discovery", proxy.Call.IsDiscovery).ofANewAgent(),
			m.at("a watch", watch).ofANewAgent())
	}
	playAll(t, lanes, trials)
}
