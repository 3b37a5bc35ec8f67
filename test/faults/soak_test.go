package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// An agent runs for a while with many Applications that change continuously, with rollouts and holds, while one fault
// follows another. At the end all is as the Applications say, and no rule of the checker was broken.
func TestSoak(t *testing.T) {
	t.Parallel()
	lasts, between := time.Duration(env.rounds)*time.Minute, 10*time.Second
	random := chance(point{block: "soak"})
	l := newLane(t, "soak", resync, "--namespaces", "soak")
	apps := l.newApps(50)
	for _, a := range apps {
		a.replicas = 2
	}
	kit.Must(t, each(apps, func(a *app) error {
		return creates("configmap one", "service 80", "deployment main:1")(t.Context(), a)
	}))
	kit.Must(t, l.await(t.Context(), standing(apps)))
	faults, began := 0, time.Now()
	for time.Since(began) < lasts {
		kit.Must(t, mutate(t.Context(), random, apps[random.IntN(len(apps))]))
		if time.Since(began) > time.Duration(faults+1)*between {
			faults++
			kit.Must(t, l.strike(t.Context(), random))
		}
		kit.Must(t, sleep(t.Context(), 300*time.Millisecond))
	}
	l.intercept(nil)
	kit.Must(t, l.await(t.Context(), standing(apps)))
	l.judgeEnd(t, apps)
	t.Logf("%s with %d Applications and %d faults", lasts, len(apps), faults)
}

// standing returns a check that all Applications are as the user last asked for.
func standing(apps []*app) func(context.Context) error {
	return func(ctx context.Context) error {
		return each(apps, func(a *app) error { return a.stands(ctx) })
	}
}

// judgeEnd judges Applications that are as the user last asked for, and removes them.
func (l *lane) judgeEnd(t *testing.T, apps []*app) {
	t.Helper()
	var played []told
	for _, a := range apps {
		l.settled[a.NamespacedName] = time.Now().Add(late)
		played = append(played, told{app: a})
	}
	violations, err := l.closeBatch(t.Context(), played)
	kit.Must(t, err)
	for _, violation := range violations {
		t.Error(violation)
	}
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
