package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/faults/proxy"
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
		{name: "another client changes it before", fault: before(func(a *app, call proxy.Call, kind string) error {
			err := change(t.Context(), a.resource(kind), types.NamespacedName{Namespace: call.Namespace, Name: call.Subject()}, `{"metadata": {"annotations": {"somebody/note": "faster"}}}`)
			if apierrors.IsNotFound(err) {
				return nil // the call creates the object
			}
			return err
		})},
		{name: "another client replaces it before", fault: before(func(a *app, call proxy.Call, kind string) error {
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
		point: point{block, s.name, m.name, fmt.Sprintf("call %d", at)},
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
		point: point{"without a fault", s.name, "none", ""}, scenario: s,
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

// raced returns the tale in which several users act while the agent works, and the
// agent is sometimes killed.
func raced(t *testing.T, number int) *tale {
	t.Helper()
	at := point{"races", "any", "any", fmt.Sprintf("number %d", number)}
	random := chance(at)
	all := append(slices.Clone(scenarios), troubled)
	each := &tale{point: at, scenario: all[random.IntN(len(all))], met: func() bool { return true }}
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

// sample chooses some of the tales, or all that [onlyVariable] selects, in random order.
func sample(block string, tales []*tale, some int) []*tale {
	random := chance(point{block: block})
	random.Shuffle(len(tales), func(i, j int) { tales[i], tales[j] = tales[j], tales[i] })
	if env.only != nil {
		return slices.DeleteFunc(tales, func(each *tale) bool { return !env.only.MatchString(each.String()) })
	}
	return tales[:min(some*env.rounds, len(tales))]
}

// Any fault at any call of an agent: the Application becomes what its spec says, nothing remains, and no
// foreign object is touched.
func TestKilledAgentLeavesNothingOver(t *testing.T) {
	t.Parallel()
	lanes := newLanes(t, "kills", 4)
	calls := callsOf(t, lanes, scenarios)
	crashes, faults := sweep("crash points", scenarios, killing(t), calls), sweep("API faults", scenarios, failing(), calls)
	playTales(t, lanes, append(sample("crash points", crashes, 20), sample("API faults", faults, 20)...))
}

// An answer never comes: the agent must stop waiting, which takes long, and costs nothing else.
func TestAnswersThatNeverComeCostNothing(t *testing.T) {
	t.Parallel()
	lanes := newLanes(t, "mute", 8)
	tales := sweep("API faults", scenarios, []mode{muted}, callsOf(t, lanes, scenarios))
	playTales(t, lanes, sample("never answered", tales, 4))
}

// Another client is faster than the agent, at each of its writes.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	lanes := newLanes(t, "overtaken", 4)
	of := []scenario{named("create"), named("update"), named("shrink"), named("delete")}
	playTales(t, lanes, sample("another client is faster", sweep("another client is faster", of, overtaking(t), callsOf(t, lanes, of)), 10))
}

// Several users, two agents and two Applications at once.
func TestRaces(t *testing.T) {
	t.Parallel()
	var tales []*tale
	for number := range 25 * env.rounds {
		tales = append(tales, raced(t, number+1))
	}
	playTales(t, newLanes(t, "races", 4), sample("races", tales, len(tales)))
}

// The same for calls that have no number: Events, the discovery of a new agent, and its watches.
func TestFaultsAtUnnumberedCallsLeaveNothingOver(t *testing.T) {
	t.Parallel()
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
	playTales(t, newLanes(t, "unnumbered", 4), sample("beside the numbers", tales, 9))
}

// atFirst returns the tale in which the first chosen call meets the fault.
func (m mode) atFirst(s scenario, name string, chosen func(proxy.Call) bool, fresh bool) *tale {
	met := &atomic.Bool{}
	return &tale{
		point: point{"beside the numbers", s.name, m.name, name},
		hold:  m.hold, fresh: fresh, scenario: s, met: met.Load,
		call: func(a *app, by *agent, _ int, call proxy.Call) *proxy.Fault {
			if !chosen(call) || met.Swap(true) {
				return nil
			}
			return m.fault(a, by, call)
		},
	}
}
