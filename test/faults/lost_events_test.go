package faults

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/faults/results"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	// resync is how often the agents of these tests compare their state with a list:
	// the shortest interval allowed.
	resync = "--resync-period=1s"
	// healed limits the time to make up for a lost event: the interval, twice the time
	// that an event may take, and the time to read again.
	healed = 20 * time.Second
)

// stream is what the watch is for: the Applications, or their objects.
type stream struct {
	name string
	is   func(proxy.Event) bool
	// verdicts are the verdicts that the tests try on its events.
	verdicts map[string]proxy.Verdict
}

func ofApplications(event proxy.Event) bool {
	return strings.Contains(event.URI, "holder."+application.Domain)
}

func ofObjects(event proxy.Event) bool { return !ofApplications(event) }

// nth returns the trial in which the nth event of a stream meets a verdict.
func (s stream) nth(of scenario, n int, what string, verdict proxy.Verdict) *tale {
	var count atomic.Int64
	return &tale{
		Point: watchFault(of, what, fmt.Sprintf("event %d of the %s", n, s.name)), fresh: true, scenario: of,
		met: func() bool { return count.Load() >= int64(n) },
		event: func(event proxy.Event) proxy.Verdict {
			if s.is(event) && count.Add(1) == int64(n) {
				return verdict
			}
			return proxy.Pass
		},
	}
}

// every returns the trial in which each nth event meets a verdict, with a limit,
// because a client that fails repeatedly waits longer.
func every(n, times int64, what string, verdict proxy.Verdict) *tale {
	var count atomic.Int64
	return &tale{
		Point: watchFault(troubled, what, ""), fresh: true, scenario: troubled, met: func() bool { return count.Load() >= n },
		event: func(proxy.Event) proxy.Verdict {
			if now := count.Add(1); now%n == 0 && now/n <= times {
				return verdict
			}
			return proxy.Pass
		},
	}
}

// tales returns the tales in which one event of the scenario meets a verdict.
func (s stream) tales(of scenario, events int) []*tale {
	var tales []*tale
	for n := 1; n <= events; n++ {
		for what, verdict := range s.verdicts {
			tales = append(tales, s.nth(of, n, what, verdict))
		}
	}
	return tales
}

// counts returns a tale without a fault that counts the events of each stream.
func counts(of scenario, streams []stream, events []atomic.Int64) *tale {
	ignored := 0
	counting := untroubledTale(of, &ignored)
	counting.fresh = true
	counting.event = func(event proxy.Event) proxy.Verdict {
		for i := range streams {
			if streams[i].is(event) {
				events[i].Add(1)
			}
		}
		return proxy.Pass
	}
	return counting
}

// Threat A40 of the security specification: any event of an object is lost, and a watch expires anywhere. The
// Application becomes what its spec says, at the latest after the resync. Each trial has its own agent,
// because an agent whose requests fail waits longer.
func TestLostEventsAreFoundByTheResync(t *testing.T) {
	kit.Long(t, "a sweep of watch faults")
	t.Parallel()
	some, many, of := 40, 4, []scenario{troubled}
	if isThorough() {
		some, many, of = 1000, 8, append(of, scenarios...)
	}
	lanes := newLanes(t, "a40", many, resync)
	streams := []stream{
		{"objects", ofObjects, map[string]proxy.Verdict{"is lost": proxy.Drop, "is answered by 410": proxy.Expire, "ends its watch": proxy.End}},
		{"Applications", ofApplications, map[string]proxy.Verdict{"is lost": proxy.Drop, "is answered by 410": proxy.Expire, "ends its watch": proxy.End}},
	}
	counted, counting := make([][2]atomic.Int64, len(of)), make([]*tale, len(of))
	for i := range of {
		counting[i] = counts(of[i], streams, counted[i][:])
	}
	playTales(t, lanes, counting)
	var tales []*tale
	for i := range of {
		for j, s := range streams {
			events := int(counted[i][j].Load())
			t.Logf("%s has %d events of the %s", of[i].name, events, s.name)
			tales = append(tales, s.tales(of[i], events)...)
		}
	}
	slices.SortFunc(tales, func(a, b *tale) int { return strings.Compare(a.String(), b.String()) })
	tales = sample(chance(results.Point{Block: "watch faults"}), tales, some)
	playTales(t, lanes, remaining(append(tales,
		every(1, math.MaxInt64, "every event comes twice", proxy.Twice),
		every(3, 5, "every third event ends its watch", proxy.End),
		every(3, 5, "every third event is answered by 410", proxy.Expire))))
}

func watchFault(of scenario, mode, place string) results.Point {
	return results.Point{Block: "watch faults", Scenario: of.name, Mode: mode, Place: place, Round: 1}
}

// Threat A40: no event of a Deployment ever arrives, and another client deletes it. The
// agent knows it only from its own creation, and the resync finds that it is deleted.
func TestObjectWithoutAnyEventIsFoundByTheResync(t *testing.T) {
	kit.Long(t, "events are lost until a resync")
	t.Parallel()
	var lost atomic.Int64
	playTales(t, []*lane{newLane(t, "a40-unseen", resync)}, []*tale{{
		Point: watchFault(troubled, "an object is lost before it was seen", ""), scenario: troubled, met: func() bool { return lost.Load() > 0 },
		event: func(event proxy.Event) proxy.Verdict {
			if event.Resource != kit.Deployments.Resource {
				return proxy.Pass
			}
			lost.Add(1)
			return proxy.Drop
		},
	}})
}

// Threat A40: watches stay open and send nothing. The resync finds the changes.
func TestSilentWatchesAreMadeUpForByTheResync(t *testing.T) {
	t.Parallel()
	l := newLane(t, "a40-mute", resync)
	a := l.newApp()
	begin := time.Now()
	for i, say := range troubled.life[:3] {
		if i > 0 {
			mute := l.proxy.Watches()
			l.proxy.Filter(func(event proxy.Event) proxy.Verdict {
				if event.Watch <= mute && ofObjects(event) {
					return proxy.Drop
				}
				return proxy.Pass
			})
			begin = time.Now()
		}
		kit.Must(t, say(t.Context(), a))
		if _, err := l.reachAll(t.Context(), a, false); err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
		if took := time.Since(begin); i > 0 && took > healed {
			t.Errorf("step %d: made good after %s, want %s at most", i+1, took, healed)
		}
	}
}

// Threat A40: the first lists of a new agent come from an API server that is behind: they show the
// state before the Application, or before the user changed it.
func TestStaleListsUndoNothing(t *testing.T) {
	kit.Long(t, "a sweep of stale lists")
	t.Parallel()
	for _, behind := range []int{0, 1, 2, 3, 4} {
		t.Run(fmt.Sprintf("before step %d", behind+1), func(t *testing.T) {
			l := newLane(t, fmt.Sprintf("a40-stale-%d", behind), resync)
			if err := l.stale(t.Context(), behind); err != nil {
				t.Error(err)
			}
		})
	}
}

// stale runs the steps, with a new agent after the step that its first lists do not
// show.
func (l *lane) stale(ctx context.Context, behind int) error {
	a := l.newApp()
	begin := l.proxy.Mark()
	for i, say := range troubled.life {
		var old map[string][]byte
		if i == behind {
			var err error
			if old, err = l.lists(ctx); err != nil {
				return err
			}
			if err := l.agent.kill(); err != nil {
				return err
			}
		}
		if err := say(ctx, a); err != nil {
			return err
		}
		if i == behind {
			l.proxy.Intercept(behindAt(old))
			if err := l.agent.start(); err != nil {
				return err
			}
		}
		if _, err := l.reachAll(ctx, a, false); err != nil {
			return fmt.Errorf("step %d: %w; the calls were\n%s", i+1, err, lines(l.proxy.Since(begin)))
		}
		if err := a.noneWanted(l.proxy.Since(begin)); err != nil {
			return err
		}
	}
	return a.onceEach(l.proxy.Since(begin))
}

// behindAt answers the first list of each kind with an old one. An API server that does
// not stream lists is asked for lists.
func behindAt(old map[string][]byte) func(proxy.Call) *proxy.Fault {
	return func(call proxy.Call) *proxy.Fault {
		key := listOf(call.URI)
		body, first := old[key]
		switch {
		case strings.Contains(call.URI, "sendInitialEvents=true"):
			return &proxy.Fault{Answer: http.StatusUnprocessableEntity}
		case call.Verb == "list" && first:
			delete(old, key)
			return &proxy.Fault{Answer: http.StatusOK, Body: body}
		}
		return nil
	}
}

// listOf returns the resource that a request lists, for any form of list.
func listOf(uri string) string {
	parsed, err := url.Parse(uri)
	if err != nil {
		return uri
	}
	return parsed.Path + " " + parsed.Query().Get("labelSelector")
}

// lists returns the current answers to the lists that an agent begins with.
func (l *lane) lists(ctx context.Context) (map[string][]byte, error) {
	client, err := rest.HTTPClientFor(env.RESTConfig())
	if err != nil {
		return nil, err
	}
	answers := map[string][]byte{}
	for _, uri := range []string{
		"/api/v1/configmaps?labelSelector=" + application.HolderLabel(l.name),
		"/api/v1/configmaps?labelSelector=" + application.OwnedByLabel,
		"/api/v1/services?labelSelector=" + application.OwnedByLabel,
		"/apis/apps/v1/deployments?labelSelector=" + application.OwnedByLabel,
	} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, env.URL()+uri, http.NoBody)
		if err != nil {
			return nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return nil, err
		}
		answers[listOf(uri)] = body
	}
	return answers, nil
}
