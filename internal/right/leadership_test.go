package right

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// The content of the Leases, and their release.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		began := metav1.NowMicro()
		a := w.start(t, ours)
		check.Equal(t, "the time until the only agent acts", 0, a.awaitActing(t, time.Second))
		sleep(time.Minute)
		now := metav1.NowMicro()
		want := coordinationv1.LeaseSpec{
			HolderIdentity: new(ours), LeaseDurationSeconds: new(int32(15)), LeaseTransitions: new(int32(0)), AcquireTime: &began, RenewTime: &now,
		}
		onTarget := w.target.lease(t, targetLease)
		check.Equal(t, "the Lease on the target", want, onTarget.Spec)
		want.LeaseDurationSeconds = new(int32(80))
		onHub := w.hub.lease(t, hubLease)
		want.RenewTime = onHub.Spec.RenewTime
		if age := time.Since(want.RenewTime.Time); age > longestBeat {
			t.Errorf("the Lease on the hub was renewed %s ago, want %s at most", age, longestBeat)
		}
		check.Equal(t, "the Lease on the hub", want, onHub.Spec)
		bound := map[string]string{application.TargetAnnotation: string(ourTarget), application.TargetLeaseAnnotation: string(onTarget.UID)}
		check.Equal(t, "what it is bound to", bound, onHub.Annotations)

		check.Must(t, a.end())
		check.Equal(t, "who holds the Leases", []string{"", ""}, []string{w.target.holder(t, targetLease), w.hub.holder(t, hubLease)})
		check.Equal(t, "after its end the agent", "does not act", a.stands())
		a.checkTold(t, "Acting")
	})
}

// The requests of an agent at rest are renewals only. Those on the hub are not synchronized
// with those of other agents.
func TestWritesAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.start(t, ours).awaitActing(t, 0)
		targetAsked, targetWrote := len(w.target.requests()), w.target.writes()
		hubAsked, hubWrote := len(w.hub.requests()), w.hub.writes()
		sleep(time.Hour)
		if asked, wrote := len(w.target.requests())-targetAsked, w.target.writes()-targetWrote; asked != 1800 || wrote != asked {
			t.Errorf("in an hour %d requests to the target, %d of them renewals, want 1800", asked, wrote)
		}
		asked := w.hub.requests()[hubAsked:]
		check.Equal(t, "renewals among the requests to the hub", len(asked), w.hub.writes()-hubWrote)
		if least, most := apart(asked); least < DefaultHeartbeat-2*time.Second || most > longestBeat || most-least < 2*time.Second {
			t.Errorf("the heartbeats are %s to %s apart, want spread over 18 to 22 s", least, most)
		}
	})
}

// One of two replicas acts. After its end, the other one takes over both Leases at once.
func TestReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		why         string
		gone        func(*testing.T, *world, *agent)
		atLeast, by time.Duration
	}{
		"released": {
			why: "A replica that is asked to end gives its Leases back: no waiting but for the next look.",
			gone: func(t *testing.T, _ *world, a *agent) {
				if err := a.end(); err != nil {
					t.Error(err)
				}
			},
			by: DefaultRetryPeriod,
		},
		"killed": {
			why:     "A replica that is killed leaves the Lease on the target to expire, and that on the hub to be taken over.",
			gone:    func(_ *testing.T, w *world, _ *agent) { w.cut("first") },
			atLeast: DefaultDuration - DefaultRetryPeriod,
			by:      DefaultDuration + 2*DefaultRetryPeriod,
		},
		"killed, and the hub has not noticed": {
			why: "The hub's Lease is released only on the target's side: the holder on the hub is taken over.",
			gone: func(t *testing.T, w *world, a *agent) {
				w.hub.cut("first")
				if err := a.end(); err != nil {
					t.Error(err)
				}
			},
			by: DefaultRetryPeriod + hubTimeout,
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			t.Log(test.why)
			w := newWorld()
			first := w.start(t, "first")
			first.awaitActing(t, 0)
			second := w.start(t, "second")
			sleep(10 * time.Minute)
			if first.stands() != "acts" || second.stands() != "does not act" || second.Refusal() != "" {
				t.Fatalf("the first %s and the second %s (%s)", first.stands(), second.stands(), second.Refusal())
			}
			began := time.Now()
			test.gone(t, w, first)
			second.awaitActing(t, time.Hour)
			if took := time.Since(began); took < test.atLeast || took > test.by {
				t.Errorf("the second acts after %s, want %s to %s", took, test.atLeast, test.by)
			}
			check.Equal(t, "who holds the Leases", []string{"second", "second"}, []string{w.target.holder(t, targetLease), w.hub.holder(t, hubLease)})
			check.Equal(t, "how often the Lease has come to another holder", 1, *w.target.lease(t, targetLease).Spec.LeaseTransitions)
		})
	}
}

// An agent that is asked to end leaves no Lease behind, whatever request is under way.
func TestEndDuringARequest(t *testing.T) {
	const answer, step, all = 50 * time.Millisecond, 10 * time.Millisecond, 400 * time.Millisecond
	acted := 0
	for after := step / 2; after < all; after += step {
		inBubble(t, "after "+after.String(), func(t *testing.T) {
			w := newWorld()
			w.hub.slowed(answer)
			w.target.slowed(answer)
			first := w.start(t, "first")
			sleep(after)
			if first.stands() == "acts" {
				acted++
			}
			check.Must(t, first.end())
			sleep(2 * answer) // what was cut off is carried out
			for name, server := range map[string]*server{targetLease: w.target, hubLease: w.hub} {
				lease, err := server.get(application.AgentsNamespace, name)
				if err == nil && *lease.Spec.HolderIdentity != "" {
					t.Errorf("%s is held by %q", name, *lease.Spec.HolderIdentity)
				}
			}
			w.start(t, "second").awaitActing(t, time.Second)
		})
	}
	if count := int(all / step); acted == 0 || acted == count {
		t.Errorf("%d of %d agents acted before their end: this shows nothing", acted, count)
	}
}

// Without a Lease on the target, the one on the hub is still required.
func TestWithoutElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.target.down()
		elects := func(o *Options) { o.Elect = false }
		first := w.start(t, "first", elects)
		first.awaitActing(t, 0)
		sleep(time.Hour)
		check.Equal(t, "without the target, of which it needs nothing, the agent", "acts", first.stands())

		t.Log("A second one takes its place at once: the first was killed, or learns it.")
		w.start(t, "second", elects).awaitActing(t, 0)
		first.awaitLoss(t)

		t.Log("That of another target is refused as ever.")
		w.hub.edit(t, hubLease, boundTo("another target"))
		third := w.start(t, "third", elects)
		sleep(time.Minute)
		if third.stands() != "does not act" || third.Refusal() == "" {
			t.Errorf("it %s, refused: %q", third.stands(), third.Refusal())
		}
	})
}

func TestGrace(t *testing.T) {
	for _, test := range []struct{ duration, deadline, want time.Duration }{
		{15 * time.Second, 10 * time.Second, 4 * time.Second},
		{2 * time.Second, 1500 * time.Millisecond, 400 * time.Millisecond},
	} {
		got := New(Options{LeaseOptions: LeaseOptions{Election: Election{Duration: test.duration, RenewDeadline: test.deadline}}, Target: link{}, Hub: link{}}).Grace()
		if got != test.want {
			t.Errorf("Grace with %s and %s is %s, want %s", test.duration, test.deadline, got, test.want)
		}
	}
}

// Wait ends with its context before the first right and after the last one.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.hub.down()
		a := w.start(t, ours)
		brief, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		check.Equal(t, "Wait before", context.DeadlineExceeded, a.Wait(brief), cmpopts.EquateErrors())
		w.hub.clear()
		a.awaitActing(t, retryMost)

		w.target.remove(targetLease)
		a.awaitLoss(t)
		brief, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := a.Wait(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait after: %v, want the context's error", err)
		}
	})
}
