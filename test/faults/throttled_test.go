package faults

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// An API server refuses every second call for a while (429). Everything is carried out, a refused call waits as long as the answer says, and each refusal costs
// at most two more calls.
func TestThrottledAgentWaitsAsToldAndDoesEverything(t *testing.T) {
	t.Parallel()
	const many = 20
	random := chance(point{block: "throttled"})
	l := newLane(t, "throttled")
	l.patience = 10 * time.Minute // a pass that fails again and again waits for a minute in the end

	l.proxy.Intercept(nil)
	apps, err := l.crowd(t.Context(), many)
	kit.Must(t, err)
	kit.Must(t, l.awaitAll(t.Context(), apps))
	usual := l.proxy.Numbers()

	refused, begin, start := 0, l.proxy.Mark(), time.Now()
	l.proxy.Intercept(func(call proxy.Call) *proxy.Fault {
		if random.IntN(2) == 0 {
			return nil
		}
		if call.Number > 0 {
			refused++
		}
		return &proxy.Fault{Answer: http.StatusTooManyRequests}
	})
	apps, err = l.crowd(t.Context(), many)
	kit.Must(t, err)
	kit.Must(t, l.awaitAll(t.Context(), apps))
	made := l.proxy.Numbers()
	l.proxy.Intercept(nil)
	t.Logf("%d Applications: usually %d calls; %d of which %d were refused, in %s",
		many, usual, made, refused, time.Since(start).Round(time.Second))
	if refused == 0 || made > usual+2*refused {
		t.Errorf("%d calls, want at most %d and two for each of %d that were refused", made, usual, refused)
	}
	if err := patient(l.proxy.Since(begin)); err != nil {
		t.Error(err)
	}
}

// patient returns an error if a refused call was repeated before its Retry-After.
func patient(calls []proxy.Call) error {
	const least = proxy.RetryAfter * time.Second * 9 / 10 // the answer takes some time
	refused := map[string]time.Time{}
	for _, call := range calls {
		if call.Number == 0 {
			continue
		}
		what := call.Verb + call.URI + string(call.Body)
		if at, again := refused[what]; again && call.At.Sub(at) < least {
			return fmt.Errorf("repeated after %s: %s", call.At.Sub(at), call)
		}
		delete(refused, what)
		if call.Faulty {
			refused[what] = call.At
		}
	}
	return nil
}
