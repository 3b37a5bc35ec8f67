package right

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/check"
)

// hostile is an unreliable server: it refuses requests, drops them, loses answers, or is slow.
// It also stops the process before or after a request.
type hostile struct {
	random *rand.Rand
	server *server
}

func (h *hostile) request(ctx context.Context, _, _ string) (bool, error) {
	h.server.mu.Lock()
	kind, d := h.random.IntN(100), time.Duration(h.random.Int64N(int64(6*time.Second)))
	h.server.mu.Unlock()
	switch {
	case kind < 60:
		return false, nil
	case kind < 70:
		return false, errRefused
	case kind < 75:
		return true, errRefused
	case kind < 85:
		<-ctx.Done()
		return kind%2 == 0, ctx.Err()
	case kind < 92: // slow, or stopped: the context has no effect
		pass(d)
		return false, nil
	}
	return true, stopped(func() { pass(d) })
}

// shortTimes leaves little room between the times of a holder and those of a candidate.
func shortTimes(o *Options) {
	o.Duration, o.RenewDeadline, o.RetryPeriod, o.Heartbeat = 2*time.Second, 1990*time.Millisecond, 300*time.Millisecond, time.Second
}

func hasEnded(a *agent) bool {
	select {
	case <-a.gone:
		return true
	default:
		return false
	}
}

// An agent uses no clock but its own, and that one only for durations. The holder's clock is wrong, and the candidate's is right.
func TestAWrongClockTakesNoLease(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour, 10 * year, -10 * year} {
		for what, test := range map[string]struct {
			renews bool
			why    string
		}{
			"alive": {renews: true, why: "A Lease that changes is not taken, however old it says it is."},
			"dead":  {why: "A Lease that does not change is taken after its duration, however new it says it is."},
		} {
			inBubble(t, fmt.Sprintf("%s/%s", skew, what), func(t *testing.T) {
				t.Log(test.why)
				w := newWorld()
				write := func() {
					w.target.edit(t, targetLease, skewed("them", DefaultDuration, skew))
					w.hub.edit(t, hubLease, edited(boundTo(string(ourTarget)), boundToLease("another"), skewed("them", time.Minute, skew)))
				}
				write()
				if test.renews {
					go func() {
						for pause(t.Context(), DefaultRetryPeriod) {
							write()
						}
					}()
				}
				began := time.Now()
				a := w.start(t, ours)
				if test.renews {
					sleep(time.Hour)
					check.Equal(t, "the agent and the holder", []string{"does not act", "them"}, []string{a.stands(), w.target.holder(t, targetLease)})
					return
				}
				a.awaitActing(t, time.Hour)
				least, most := DefaultDuration+time.Minute, DefaultDuration+DefaultRetryPeriod+time.Minute+longestBeat
				if took := time.Since(began); took < least || took > most {
					t.Errorf("it acts after %s, want %s to %s", took, least, most)
				}
			})
		}
	}
}

// skewed is a Lease from a holder with a wrong clock.
func skewed(holder string, lasts, skew time.Duration) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity = &holder
		l.Spec.LeaseDurationSeconds = new(int32(lasts.Seconds()))
		at := metav1.NewMicroTime(time.Now().Add(skew))
		l.Spec.RenewTime, l.Spec.AcquireTime = &at, &at
	}
}

// The Lease on the target is deleted while its holder can reach neither server. The hub's Lease has expired by then. The
// holder acts until its renewal is overdue, and the next one must not act before: it waits for the hub's Lease, which
// it has not seen yet.
func TestDeletedLeaseOfAHolderThatTheHubHasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		first := w.start(t, "first")
		first.awaitActing(t, 0)
		w.hub.cut("first")
		sleep(2 * beatsOfHub * DefaultHeartbeat)
		check.Equal(t, "without the hub the first", "acts", first.stands())
		w.target.cut("first")
		w.target.remove(targetLease)
		second, began := w.start(t, "second"), time.Now()
		for second.Target() != nil && time.Since(began) < time.Hour {
			sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); first.Target() == nil || took > 2*beatsOfHub*DefaultHeartbeat {
			t.Errorf("the second acts after %s, and then the first %s", took, first.stands())
		}
	})
}
