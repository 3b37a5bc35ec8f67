package right

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

func boundTo(target string) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, application.TargetAnnotation, target)
	}
}

func boundToLease(uid types.UID) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, application.TargetLeaseAnnotation, string(uid))
	}
}

func heldBy(holder string) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity = &holder
		l.Spec.LeaseDurationSeconds = new(int32(80))
		l.Spec.RenewTime = new(metav1.NowMicro())
	}
}

func edited(edits ...func(*coordinationv1.Lease)) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) {
		for _, edit := range edits {
			edit(l)
		}
	}
}

// The Leases that an agent may find on the hub.
func TestDuplicates(t *testing.T) {
	const (
		never   = 24 * time.Hour
		expires = beatsOfHub * DefaultHeartbeat
		look    = longestBeat
	)
	here := boundTo(string(ourTarget))
	for name, test := range map[string]struct {
		why         string
		found       func(*coordinationv1.Lease)
		renewed     bool          // the holder is alive
		atLeast, by time.Duration // the time of acting
		refusal     string
	}{
		"another target's": {
			why:   "Two clusters cannot have one name: the second would delete what the first has.",
			found: edited(boundTo("another"), heldBy("them")), renewed: true,
			atLeast: never, refusal: "belongs to the agent of another target, another",
		},
		"another target's, silent": {
			why:     "Its agent may be cut off, and goes on healing: silence proves nothing.",
			found:   edited(boundTo("another"), heldBy("them")),
			atLeast: never, refusal: "belongs to the agent of another target, another",
		},
		"another target's, given back": {
			why:     "Its agent is down for a while; the objects are there.",
			found:   edited(boundTo("another"), heldBy("")),
			atLeast: never, refusal: "belongs to the agent of another target, another",
		},
		"another installation's on this target": {
			why:   "Each of the two holds a Lease in its own namespace: the hub's decides.",
			found: edited(here, boundToLease("other"), heldBy("them")), renewed: true,
			atLeast: never, refusal: "is held by another agent of this target",
		},
		"another installation's on this target, silent": {
			why:     "The Lease on the target was deleted and made anew, or the namespace has changed: who had it is gone when it has expired.",
			found:   edited(here, boundToLease("other"), heldBy("them")),
			atLeast: expires, by: expires + look, refusal: "is held by another agent of this target",
		},
		"another installation's on this target, given back": {
			why:   "Who had it is gone for certain.",
			found: edited(here, boundToLease("other"), heldBy("")),
		},
		"an administrator's": {
			why:   "It binds nobody and nobody has it.",
			found: func(*coordinationv1.Lease) {},
		},
		"unbound, held": {
			why:     "Who has it is not known: it is left to expire.",
			found:   heldBy("them"),
			atLeast: expires, by: expires + look, refusal: "is held by another agent of this target",
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			t.Log(test.why)
			w := newWorld()
			w.hub.edit(t, hubLease, test.found)
			if test.renewed {
				go w.beat(t, "them")
			}
			began := time.Now()
			a := w.start(t, ours)
			synctest.Wait()
			checkRefusal(t, a, test.refusal)
			if test.atLeast > 0 {
				checkIdle(t, w, a, test.atLeast)
			}
			if test.atLeast == never {
				a.checkTold(t, "Refused")
				return
			}
			a.awaitActing(t, time.Hour)
			if took := time.Since(began); took < test.atLeast || took > test.by {
				t.Errorf("it acts after %s, want %s to %s", took, test.atLeast, test.by)
			}
			checkRefusal(t, a, "")
		})
	}
}

// An agent whose target must not be the hub does not act on the hub. It writes no Lease there.
func TestTheTargetMustNotBeTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		a := w.start(t, ours, func(o *Options) { o.HubUID = ourTarget })
		check.Equal(t, "Run", ErrTargetIsHub, <-a.ended, cmpopts.EquateErrors())
		check.Equal(t, "the agent", "does not act", a.stands())
		if _, err := w.hub.get(application.AgentsNamespace, hubLease); err == nil {
			t.Error("it has written the Lease on the hub")
		}
		w.start(t, ours, func(o *Options) { o.HubUID = "another" }).awaitActing(t, time.Hour)
	})
}

// checkRefusal compares a part of the refusal. An empty text means no refusal.
func checkRefusal(t *testing.T, a *agent, want string) {
	t.Helper()
	got := a.Refusal()
	if want == "" && got != "" || want != "" && (!strings.HasPrefix(got, "DuplicateAgent: ") || !strings.Contains(got, want)) {
		t.Errorf("refused: %q, want %q", got, want)
	}
}

// checkIdle fails if the agent acts, or takes the Lease, within this time.
func checkIdle(t *testing.T, w *world, a *agent, d time.Duration) {
	t.Helper()
	const step = 10 * time.Second
	for gone := time.Duration(0); gone < d; gone += step {
		if a.stands() != "does not act" || w.hub.holder(t, hubLease) == ours {
			t.Fatalf("after %s it %s, and %q holds the Lease", gone, a.stands(), w.hub.holder(t, hubLease))
		}
		sleep(min(step, d-gone-1))
	}
}

// beat renews the Lease on the hub as another agent, until the test ends.
func (w *world) beat(t *testing.T, holder string) {
	for pause(t.Context(), DefaultHeartbeat) {
		w.hub.edit(t, hubLease, heldBy(holder))
	}
}

// A Lease of another target is not taken over, even after a year. It is taken over after its
// deletion.
func TestOnlyDeletionUnbinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.hub.edit(t, hubLease, edited(boundTo("another"), heldBy("them")))
		a := w.start(t, ours, func(o *Options) {
			o.Duration, o.RenewDeadline, o.RetryPeriod, o.Heartbeat = 24*time.Hour, 12*time.Hour, 6*time.Hour, time.Hour
		})
		sleep(365 * 24 * time.Hour)
		check.Equal(t, "the agent, and who holds the Lease", []string{"does not act", "them"}, []string{a.stands(), w.hub.holder(t, hubLease)})
		w.hub.remove(hubLease)
		a.awaitActing(t, 2*time.Hour)
		a.checkTold(t, "Refused", "Acting")
	})
}

// The changes of the Lease on the hub while the agent acts.
func TestHubLease(t *testing.T) {
	for name, test := range map[string]struct {
		why  string
		then func(*testing.T, *world)
		lost bool
	}{
		"deleted": {
			why:  "Nobody else has it: an agent that acts has its name again.",
			then: func(_ *testing.T, w *world) { w.hub.remove(hubLease) },
		},
		"emptied": {
			why:  "Nobody else has it.",
			then: func(t *testing.T, w *world) { w.hub.edit(t, hubLease, heldBy("")) },
		},
		"edited": {
			why: "Somebody writes a label: the next heartbeat rests on that.",
			then: func(t *testing.T, w *world) {
				w.hub.edit(t, hubLease, func(l *coordinationv1.Lease) { metav1.SetMetaDataLabel(&l.ObjectMeta, "a", "b") })
			},
		},
		"taken": {
			why:  "A replica of ours holds the Lease on the target by now.",
			then: func(t *testing.T, w *world) { w.hub.edit(t, hubLease, heldBy("them")) },
			lost: true,
		},
		"deleted and taken": {
			why: "An administrator gave the name to another target.",
			then: func(t *testing.T, w *world) {
				w.hub.remove(hubLease)
				w.hub.edit(t, hubLease, edited(boundTo("another"), heldBy("them")))
			},
			lost: true,
		},
		"bound to another target": {
			why:  "An administrator gave the name away by an edit.",
			then: func(t *testing.T, w *world) { w.hub.edit(t, hubLease, boundTo("another")) },
			lost: true,
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			t.Log(test.why)
			w := newWorld()
			a := w.start(t, ours)
			a.awaitActing(t, 0)
			test.then(t, w)
			before, err := w.hub.get(application.AgentsNamespace, hubLease)
			if err != nil {
				before = nil
			}
			sleep(longestBeat)
			if !test.lost {
				if a.stands() != "acts" || w.hub.holder(t, hubLease) != ours {
					t.Errorf("it %s, want: acts with its Lease", a.stands())
				}
				return
			}
			a.awaitLoss(t)
			check.Equal(t, "after the loss the agent", "does not act", a.stands())
			if holder := w.hub.holder(t, hubLease); holder == "them" {
				check.Equal(t, "the Lease of who has taken it", before, w.hub.lease(t, hubLease))
			}
			check.Equal(t, "who holds the Lease on the target while passes may be under way", ours, w.target.holder(t, targetLease))
		})
	}
}

// A replica may have lost the Lease on the target without knowing it. On the hub, it takes
// nothing from the replica that acts.
func TestOnlyWhoHoldsTheTargetTakesTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.hub.cut("first")
		first := w.start(t, "first")
		sleep(time.Minute)
		w.target.cut("first")
		second := w.start(t, "second")
		second.awaitActing(t, DefaultDuration+DefaultRetryPeriod)
		w.hub.clear()
		sleep(time.Minute)
		if w.hub.holder(t, hubLease) != "second" || second.stands() != "acts" || first.stands() != "does not act" {
			t.Errorf("the first %s and the second %s; %q holds the Lease on the hub", first.stands(), second.stands(), w.hub.holder(t, hubLease))
		}
	})
}

// An agent acts only after the first answer of the hub. Afterwards the hub may be away for any
// time.
func TestUnreachableHub(t *testing.T) {
	for name, cut := range map[string]func(*server){"refusing": (*server).down, "swallowing": (*server).swallowing} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld()
			cut(w.hub)
			a := w.start(t, ours)
			sleep(time.Hour)
			check.Equal(t, "at first start, without a hub, the agent", []string{"does not act", ""}, []string{a.stands(), a.Refusal()})
			w.hub.clear()
			a.awaitActing(t, retryMost+hubTimeout)

			cut(w.hub)
			before := len(w.hub.requests())
			sleep(time.Hour)
			check.Equal(t, "while the hub is away the agent", "acts", a.stands())
			checkRetries(t, w.hub.requests()[before:])
			w.hub.clear()
			sleep(retryMost + hubTimeout)
			check.Equal(t, "when the hub is back the agent, and who holds its Lease", []string{"acts", ours}, []string{a.stands(), w.hub.holder(t, hubLease)})
			a.checkTold(t, "HubLost", "HubBack", "Acting", "HubLost", "HubBack")
		})
	}
}

// checkRetries checks that retries come 2 to 5 s after the last failure, spread over most of
// that range.
func checkRetries(t *testing.T, asked []time.Time) {
	t.Helper()
	least, most := apart(asked)
	if least < hubRetry || most > retryMost+hubTimeout || most-least < (retryMost-hubRetry)/2 {
		t.Errorf("%d requests are %s to %s apart", len(asked), least, most)
	}
}

// apart returns the shortest and the longest time between requests.
func apart(asked []time.Time) (least, most time.Duration) {
	least = math.MaxInt64
	for i := 1; i < len(asked); i++ {
		pause := asked[i].Sub(asked[i-1])
		least, most = min(least, pause), max(most, pause)
	}
	return least, most
}

// A target that does not return its identity is asked again, before the hub is asked.
func TestIdentityIsAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		asked := 0
		a := w.start(t, ours, func(o *Options) {
			o.TargetUID = func(ctx context.Context) (types.UID, error) {
				if asked++; asked == 1 {
					<-ctx.Done()
				}
				if asked < 5 {
					return "", errRefused
				}
				return ourTarget, nil
			}
		})
		sleep(DefaultRenewDeadline)
		if w.hub.writes() > 0 || a.stands() != "does not act" {
			t.Errorf("the Lease on the hub is taken for nobody, and it %s", a.stands())
		}
		a.awaitActing(t, time.Minute)
		check.Equal(t, "bound to", string(ourTarget), w.hub.lease(t, hubLease).Annotations[application.TargetAnnotation])
	})
}
