package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/faults/checker"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/faults/results"
	"github.com/krake-observer/krake-observer/test/kit"
)

// soakVariable is how long the soak of the release tier takes.
const soakVariable = "KRAKE_FAULTS_SOAK"

// soak is the size of a soak.
type soak struct {
	apps                 int
	lasts, between, step time.Duration
	// restarts of the API server, evenly distributed
	restarts int
}

// An agent runs for a long time with many Applications that change continuously, with rollouts and
// holds, while one fault follows another. At the end all is as the Applications say, and no invariant
// was violated. Memory, goroutines and files of the agent have not grown, and neither has etcd.
func TestSoak(t *testing.T) {
	kit.Long(t, "a soak")
	point := results.Point{Block: "soak", Scenario: "200 Applications", Mode: "random faults", Round: 1}
	if isRelease() && env.results.Has(point) {
		t.Skip("the results have a soak: take them away to have another")
	}
	s := newSoak(t)
	random := chance(point)
	metrics := freeAddress(t)
	l := newLane(t, "soak", resync, "--namespaces", "soak", "--metrics-bind-address", metrics)
	token := reader(t)
	apps := l.newApps(s.apps)
	for _, a := range apps {
		a.replicas = 2
	}
	kit.Must(t, each(apps, func(a *app) error {
		return creates("configmap one", "service 80", "deployment main:1")(t.Context(), a)
	}))
	kit.Must(t, l.await(t.Context(), standing(apps)))

	began, vitals, faults := time.Now(), newVitals(), 0
	nextFault, restarts := began.Add(s.between), 0
	for mutations := 0; time.Since(began) < s.lasts; mutations++ {
		kit.Must(t, env.interrupted())
		kit.Must(t, mutate(t.Context(), random, apps[random.IntN(len(apps))]))
		if time.Now().After(nextFault) {
			nextFault = time.Now().Add(s.between)
			faults++
			if s.restarts > 0 && time.Since(began) > time.Duration(restarts+1)*s.lasts/time.Duration(s.restarts+1) && restarts < s.restarts {
				restarts++
				kit.Must(t, restartAPIServer(t.Context(), nil))
			} else {
				kit.Must(t, l.strike(t.Context(), random))
			}
			kit.Must(t, vitals.take(t.Context(), l.agent, metrics, token, time.Since(began)))
		}
		kit.Must(t, sleep(t.Context(), s.step))
	}
	l.intercept(nil)
	kit.Must(t, l.await(t.Context(), standing(apps)))
	for _, a := range apps {
		l.settled[a.NamespacedName] = time.Now().Add(late)
	}
	violations, err := l.closeBatch(t.Context(), toldOf(apps))
	kit.Must(t, err)
	t.Logf("%s with %d Applications and %d faults, of which the API server was restarted %d times: %s", s.lasts, s.apps, faults, restarts, vitals)
	for _, violation := range violations {
		t.Error(violation)
	}
	if len(vitals.hours) == 0 {
		t.Error("the agent was never asked what it needs")
	}
	if isRelease() {
		kit.Must(t, vitals.areFlat())
		kit.Must(t, s.record(point, faults, vitals, violations))
	}
}

// newSoak returns the size of the soak in this tier. Without restarts of the API server,
// other tests may run beside it.
func newSoak(t *testing.T) soak {
	t.Helper()
	if !isRelease() {
		t.Parallel()
		return soak{apps: 50, lasts: 5 * time.Minute, between: 10 * time.Second, step: 500 * time.Millisecond}
	}
	s := soak{apps: 200, lasts: 30 * time.Minute, between: 30 * time.Second, step: time.Second, restarts: 2}
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		s.lasts, err = time.ParseDuration(text)
		kit.Must(t, err)
	}
	return s
}

// record records the outcome of the soak.
func (s soak) record(point results.Point, faults int, vitals *vitals, violations []checker.Violation) error {
	record := recordOf(point, faults > 0, s.lasts, violations)
	record.Note = fmt.Sprintf("%d faults; %s", faults, vitals)
	return env.results.Add(&record)
}

// standing returns a check that all Applications are as the user last asked for.
func standing(apps []*app) func(context.Context) error {
	return func(ctx context.Context) error {
		return each(apps, func(a *app) error { return a.stands(ctx) })
	}
}

// toldOf returns the Applications as tales, of which only the end is judged.
func toldOf(apps []*app) []told {
	var all []told
	for _, a := range apps {
		all = append(all, told{app: a})
	}
	return all
}

// mutate changes something, as the user or as another client.
func mutate(ctx context.Context, random *rand.Rand, a *app) error {
	sentences := []sentence{
		says(fmt.Sprintf("configmap %d", random.IntN(100)), "service 80", "deployment main:1"),
		says(fmt.Sprintf("service %d", 80+random.IntN(10)), fmt.Sprintf("deployment main:%d", random.IntN(10))),
		drifts(fmt.Sprintf("service %d", 1000+random.IntN(1000))),
		drifts("deployment main:theirs"), loses("configmap"), loses("deployment"), edits("service"),
		holds(10 * time.Second),
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return sentences[random.IntN(len(sentences))](ctx, a)
}

// holds: the user holds the Application back for a while.
func holds(long time.Duration) sentence {
	return func(ctx context.Context, a *app) error {
		until := time.Now().Add(long).UTC().Format(time.RFC3339)
		return change(ctx, kit.ConfigMaps, a.NamespacedName, fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, application.HoldUntilAnnotation, until))
	}
}

// strike causes a fault for a while.
func (l *lane) strike(ctx context.Context, random *rand.Rand) error {
	var calls atomic.Int64
	storm := func(fault proxy.Fault) func(proxy.Call) *proxy.Fault {
		return func(proxy.Call) *proxy.Fault {
			if calls.Add(1)%2 == 0 {
				return nil
			}
			return &fault
		}
	}
	storms := []func(proxy.Call) *proxy.Fault{
		storm(proxy.Fault{}), storm(proxy.Fault{Sent: true}), storm(proxy.Fault{Answer: http.StatusInternalServerError}),
		storm(proxy.Fault{Answer: http.StatusTooManyRequests}), storm(proxy.Fault{Answer: http.StatusConflict}),
		storm(proxy.Fault{Sent: true, Delay: 500 * time.Millisecond, Answer: http.StatusGatewayTimeout}),
	}
	chosen := random.IntN(len(storms) + 3)
	switch {
	case chosen < len(storms):
		l.intercept(storms[chosen])
	case chosen == len(storms): // all watches are too old
		l.proxy.Filter(func(proxy.Event) proxy.Verdict { return proxy.Expire })
	case chosen == len(storms)+1: // every event arrives twice
		l.proxy.Filter(func(proxy.Event) proxy.Verdict { return proxy.Twice })
	default: // the agent pauses
		if err := l.agent.pause(ctx, time.Second); err != nil {
			return err
		}
	}
	err := sleep(ctx, time.Second)
	l.intercept(nil)
	l.proxy.Filter(nil)
	return err
}

// pause pauses the agent for a while (SIGSTOP, SIGCONT).
func (a *agent) pause(ctx context.Context, long time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.process == nil {
		return nil
	}
	return pulse(ctx, a.process, long)
}
