package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// resync is how often the agents of these tests compare their state with a list: the
// shortest interval allowed.
const resync = "--resync-period=1s"

// stream is what the watch is for: the Applications, or their objects.
type stream struct {
	name string
	is   func(proxy.Event) bool
}

func ofApplications(event proxy.Event) bool {
	return strings.Contains(event.URI, "holder."+application.Domain)
}

func ofObjects(event proxy.Event) bool { return !ofApplications(event) }

// nth returns the tale in which the nth event of a stream meets a verdict.
func (s stream) nth(of scenario, n int, what string, verdict proxy.Verdict) *tale {
	var count atomic.Int64
	return &tale{
		point: point{"watch faults", of.name, what, fmt.Sprintf("event %d of the %s", n, s.name)}, fresh: true, scenario: of,
		met: func() bool { return count.Load() >= int64(n) },
		event: func(event proxy.Event) proxy.Verdict {
			if s.is(event) && count.Add(1) == int64(n) {
				return verdict
			}
			return proxy.Pass
		},
	}
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

// Any event of an object is lost or comes twice, and a watch ends or expires anywhere. The Application becomes what its
// spec says, at the latest after the resync. Each tale has its own agent, because an agent whose requests fail waits
// longer.
func TestLostEventsAreFoundByTheResync(t *testing.T) {
	t.Parallel()
	lanes := newLanes(t, "lost", 4, resync)
	streams := []stream{{"objects", ofObjects}, {"Applications", ofApplications}}
	counted := make([]atomic.Int64, len(streams))
	playTales(t, lanes, []*tale{counts(troubled, streams, counted)})
	var tales []*tale
	for i, s := range streams {
		events := int(counted[i].Load())
		t.Logf("there are %d events of the %s", events, s.name)
		for n := 1; n <= events; n++ {
			tales = append(tales,
				s.nth(troubled, n, "is lost", proxy.Drop), s.nth(troubled, n, "comes twice", proxy.Twice),
				s.nth(troubled, n, "is answered by 410", proxy.Expire), s.nth(troubled, n, "ends its watch", proxy.End))
		}
	}
	playTales(t, lanes, sample("watch faults", tales, 24))
}

// The first lists of a new agent come from an API server that is behind: they show the
// state before the Application, or before the user changed it.
func TestStaleListsUndoNothing(t *testing.T) {
	t.Parallel()
	for behind := range troubled.life {
		t.Run(fmt.Sprintf("before step %d", behind+1), func(t *testing.T) {
			t.Parallel()
			l := newLane(t, fmt.Sprintf("stale-%d", behind), resync)
			a := l.newApp()
			kit.Must(t, l.stale(t.Context(), a, behind))
			l.judgeEnd(t, []*app{a})
		})
	}
}

// stale runs the steps, with a new agent after the step that its first lists do not
// show.
func (l *lane) stale(ctx context.Context, a *app, behind int) error {
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
	}
	return nil
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
