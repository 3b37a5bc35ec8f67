package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/faults/results"
	"github.com/krake-observer/krake-observer/test/kit"
)

// mode is a way in which a call goes wrong.
type mode struct {
	name string
	// fault returns the fault for a call of an agent, nil if the mode does not fit it.
	fault func(*app, *agent, proxy.Call) *proxy.Fault
	// hold: the agent stays stopped until the user has said the next sentence.
	hold bool
}

// killing returns the ways to kill an agent at a call. A crash that is over before the
// user's next action proves little: the agent finds unrecorded work again. A leak shows
// in work that was done, not recorded, and no longer wanted when the agent is back.
func killing(t *testing.T) []mode {
	kill := func(of *agent) func() {
		return func() {
			if err := of.kill(); err != nil {
				t.Error(err)
			}
		}
	}
	after := func(_ *app, of *agent, _ proxy.Call) *proxy.Fault { return &proxy.Fault{Sent: true, Do: kill(of)} }
	return []mode{
		{name: "killed before", fault: func(_ *app, of *agent, _ proxy.Call) *proxy.Fault { return &proxy.Fault{Do: kill(of)} }},
		{name: "killed after", fault: after},
		{name: "killed after, and the user goes on", fault: after, hold: true},
	}
}

// muted is the mode in which a call takes longest: the agent must time out.
var muted = mode{name: "done, and never answered", fault: func(*app, *agent, proxy.Call) *proxy.Fault { return &proxy.Fault{Sent: true, Mute: true} }}

// failing returns the ways in which a call fails.
func failing() []mode {
	modes := []mode{{name: "cut after", fault: func(*app, *agent, proxy.Call) *proxy.Fault { return &proxy.Fault{Sent: true} }}}
	for _, code := range []int{
		http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests,
		http.StatusConflict, http.StatusForbidden,
	} {
		modes = append(modes, mode{name: fmt.Sprint(code), fault: func(*app, *agent, proxy.Call) *proxy.Fault { return &proxy.Fault{Answer: code} }})
	}
	return modes
}

// overtaking returns the ways in which another client is faster than the agent: when
// its write arrives, the object has changed, or was replaced.
func overtaking(t *testing.T) []mode {
	before := func(act func(*app, proxy.Call, string) error) func(*app, *agent, proxy.Call) *proxy.Fault {
		return func(a *app, _ *agent, call proxy.Call) *proxy.Fault {
			kind, found := map[string]string{"configmaps": "configmap", "services": "service", "deployments": "deployment"}[call.Resource]
			if !found || !call.IsWrite() || call.Subject() != a.named(kind).Name {
				return nil
			}
			return &proxy.Fault{Before: func() {
				if err := act(a, call, kind); err != nil {
					t.Errorf("%s: %v", call, err)
				}
			}}
		}
	}
	return []mode{
		{name: "somebody changes it before", fault: before(func(a *app, call proxy.Call, kind string) error {
			err := change(t.Context(), a.resource(kind), types.NamespacedName{Namespace: call.Namespace, Name: call.Subject()}, `{"metadata": {"annotations": {"somebody/note": "faster"}}}`)
			if apierrors.IsNotFound(err) {
				return nil // the call creates the object
			}
			return err
		})},
		{name: "somebody replaces it before", fault: before(func(a *app, call proxy.Call, kind string) error {
			resource := env.Dynamic.Resource(a.resource(kind)).Namespace(call.Namespace)
			if err := resource.Delete(t.Context(), call.Subject(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			_, theirs := a.object(map[string]string{"configmap": "configmap theirs", "service": "service 70", "deployment": "deployment main:theirs"}[kind])
			_, err := resource.Create(t.Context(), &unstructured.Unstructured{Object: theirs}, metav1.CreateOptions{FieldManager: "somebody"})
			a.replaced.Store(&kind)
			return err
		})},
	}
}

// at returns the tale in which the nth call about the Application goes wrong.
func (m mode) at(s scenario, block string, at int) *tale {
	met := &atomic.Bool{}
	return &tale{
		Point: results.Point{Block: block, Scenario: s.name, Mode: m.name, Place: fmt.Sprintf("call %d", at), Round: 1},
		hold:  m.hold, scenario: s, met: met.Load,
		call: func(a *app, by *agent, number int, call proxy.Call) *proxy.Fault {
			if number != at || met.Load() {
				return nil
			}
			fault := m.fault(a, by, call)
			met.Store(fault != nil)
			return fault
		},
	}
}

// untroubledTale is a tale without a fault; it sets calls to the number of calls.
func untroubledTale(s scenario, calls *int) *tale {
	return &tale{
		Point: results.Point{Block: "without a fault", Scenario: s.name, Mode: "none", Round: 1}, scenario: s,
		met: func() bool { return true },
		call: func(_ *app, _ *agent, number int, _ proxy.Call) *proxy.Fault {
			*calls = max(*calls, number)
			return nil
		},
	}
}

// callsOf returns the number of calls about an Application, by scenario.
func callsOf(t *testing.T, lanes []*lane, of []scenario) map[string]int {
	t.Helper()
	calls, counting := map[string]int{}, make([]int, len(of))
	var tales []*tale
	for i := range of {
		tales = append(tales, untroubledTale(of[i], &counting[i]))
	}
	playTales(t, lanes, tales)
	for i := range of {
		calls[of[i].name] = counting[i]
	}
	t.Logf("calls: %v", calls)
	return calls
}

// sweep returns all tales of the scenarios in which one call goes wrong.
func sweep(block string, of []scenario, modes []mode, calls map[string]int) []*tale {
	var tales []*tale
	for _, s := range of {
		for _, m := range modes {
			for call := 1; call <= calls[s.name]; call++ {
				tales = append(tales, m.at(s, block, call))
			}
		}
	}
	return tales
}

// doubled returns the tale in which two calls go wrong, each in its way.
func doubled(number int, calls map[string]int, modes []mode) *tale {
	point := results.Point{Block: "double faults", Scenario: "any", Mode: "any two", Place: fmt.Sprintf("number %d", number), Round: 1}
	random := chance(point)
	s := scenarios[random.IntN(len(scenarios))]
	first, then := modes[random.IntN(len(modes))], modes[random.IntN(len(modes))]
	const soon = 4 // calls after the first fault, which it causes
	at := 1 + random.IntN(max(1, calls[s.name]))
	again := at + 1 + random.IntN(soon)
	var met atomic.Int64
	return &tale{
		Point: point, scenario: s, hold: first.hold || then.hold, met: func() bool { return met.Load() == 2 },
		call: func(a *app, by *agent, number int, call proxy.Call) *proxy.Fault {
			switch number {
			case at:
				met.Add(1)
				return first.fault(a, by, call)
			case again:
				met.Add(1)
				return then.fault(a, by, call)
			}
			return nil
		},
	}
}

// raced returns the tale in which several users act while the agent works, and the
// agent is sometimes killed.
func raced(t *testing.T, number int) *tale {
	t.Helper()
	point := results.Point{Block: "races", Scenario: "any", Mode: "any", Place: fmt.Sprintf("number %d", number), Round: 1}
	random := chance(point)
	all := append(slices.Clone(scenarios), troubled)
	each := &tale{Point: point, scenario: all[random.IntN(len(all))], met: func() bool { return true }}
	each.after = func(ctx context.Context, a *app, sentence int) error {
		for range random.IntN(4) {
			if err := meddle(ctx, random, a); err != nil {
				return err
			}
		}
		if a.uid != "" && each.scenario.two && sentence > 0 && random.IntN(2) == 0 { // back, before it has arrived
			if err := moves()(ctx, a); err != nil {
				return err
			}
		}
		if agents := a.lane.agents(); random.IntN(4) == 0 {
			return agents[random.IntN(len(agents))].kill()
		}
		return nil
	}
	return each
}

// meddle changes or deletes one of the Application's objects as another client, some
// time after another event.
func meddle(ctx context.Context, random *rand.Rand, a *app) error {
	if err := sleep(ctx, time.Duration(random.IntN(150))*time.Millisecond); err != nil {
		return err
	}
	kinds := slices.DeleteFunc([]string{"configmap", "service", "deployment"}, func(kind string) bool {
		return a.spec[kind] == nil || a.isOthers(kind) || a.rival != nil && a.rival.spec[kind] != nil // the faster Application may have it
	})
	if len(kinds) == 0 {
		return nil
	}
	kind := kinds[random.IntN(len(kinds))]
	if random.IntN(3) == 0 {
		return loses(kind)(ctx, a)
	}
	return drifts(map[string]string{"configmap": "configmap theirs", "service": "service 99", "deployment": "deployment main:theirs"}[kind])(ctx, a)
}

// inRound returns the tales for another round: another client changes objects, in each
// round at other times. The first round has no other client.
func inRound(round int, tales []*tale) []*tale {
	for _, each := range tales {
		if each.Round = round; round > 1 {
			random := chance(each.Point)
			each.after = func(ctx context.Context, a *app, _ int) error { return meddle(ctx, random, a) }
		}
	}
	return tales
}

// roundsVariable is the number of rounds of the release tier.
const roundsVariable = "KRAKE_FAULTS_ROUNDS"

func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv(roundsVariable)
	if text == "" || !isRelease() {
		return 1
	}
	number, err := strconv.Atoi(text)
	kit.Must(t, err)
	return number
}

// sample chooses some of the selected tales, in random order.
func sample(random *rand.Rand, tales []*tale, some int) []*tale {
	tales = selected(tales)
	random.Shuffle(len(tales), func(i, j int) { tales[i], tales[j] = tales[j], tales[i] })
	return tales[:min(some, len(tales))]
}

// selected leaves out the tales that [onlyVariable] does not select.
func selected(tales []*tale) []*tale {
	if env.only == nil {
		return tales
	}
	return slices.DeleteFunc(tales, func(each *tale) bool { return !env.only.MatchString(each.String()) })
}

// remaining leaves out tales that were not selected. If none are named, it leaves out those that an
// earlier run of the release tier has tried.
func remaining(tales []*tale) []*tale {
	if env.only != nil || env.results == nil {
		return selected(tales)
	}
	return slices.DeleteFunc(tales, func(each *tale) bool { return env.results.Has(each.Point) })
}
