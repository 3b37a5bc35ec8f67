package right

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/internal/resync"
	"github.com/krake-observer/krake-observer/test/check"
)

func takenBy(holder string) func(*coordinationv1.Lease) {
	return func(l *coordinationv1.Lease) {
		heldBy(holder)(l)
		l.Spec.LeaseTransitions = new(ptr.Deref(l.Spec.LeaseTransitions, 0) + 1)
	}
}

// The target is unreachable for ten minutes, and its state may change meanwhile.
func TestUnreachableTarget(t *testing.T) {
	for name, test := range map[string]struct {
		why       string
		meanwhile func(*testing.T, *world)
		lost      bool
	}{
		"nothing happened": {
			why:       "Nobody else could reach it either: the process goes on with all it knows.",
			meanwhile: func(*testing.T, *world) {},
		},
		"a label was written": {
			why: "That takes nothing from us.",
			meanwhile: func(t *testing.T, w *world) {
				w.target.edit(t, targetLease, func(l *coordinationv1.Lease) { metav1.SetMetaDataLabel(&l.ObjectMeta, "a", "b") })
			},
		},
		"another one has it": {
			why:       "The target was away for us alone.",
			meanwhile: func(t *testing.T, w *world) { w.target.edit(t, targetLease, takenBy("them")) },
			lost:      true,
		},
		"another one had it": {
			why: "It has acted and given it back: what we remember of the target is outdated.",
			meanwhile: func(t *testing.T, w *world) {
				w.target.edit(t, targetLease, takenBy("them"))
				w.target.edit(t, targetLease, heldBy(""))
			},
			lost: true,
		},
		"another one had it, and it is ours again": {
			why: "Whoever restored it from a backup did not undo what the other one did.",
			meanwhile: func(t *testing.T, w *world) {
				w.target.edit(t, targetLease, takenBy("them"))
				w.target.edit(t, targetLease, takenBy(ours))
			},
			lost: true,
		},
		"it was emptied": {
			why:       "Nobody takes it from an agent but who wants it.",
			meanwhile: func(t *testing.T, w *world) { w.target.edit(t, targetLease, heldBy("")) },
			lost:      true,
		},
		"it is gone": {
			why:       "It may be another cluster that has the address now.",
			meanwhile: func(_ *testing.T, w *world) { w.target.remove(targetLease) },
			lost:      true,
		},
	} {
		for cutName, cut := range map[string]func(*server){"refusing": (*server).down, "swallowing": (*server).swallowing} {
			inBubble(t, name+"/"+cutName, func(t *testing.T) {
				t.Log(test.why)
				w := newWorld()
				a := w.start(t, ours)
				a.awaitActing(t, 0)
				sleep(time.Minute)
				cut(w.target)
				sleep(DefaultRenewDeadline - 1)
				check.Equal(t, "before the renewal is overdue the agent", "acts", a.stands())
				sleep(DefaultRetryPeriod)
				check.Equal(t, "when the renewal is overdue the agent", "unreachable", a.stands())
				sleep(10 * time.Minute)
				check.Must(t, a.Wait(t.Context()))
				check.Equal(t, "after ten minutes the agent", "unreachable", a.stands())
				test.meanwhile(t, w)
				w.target.clear()
				if test.lost {
					a.awaitLoss(t)
					check.Equal(t, "after the loss the agent", "does not act", a.stands())
					return
				}
				sleep(DefaultRenewDeadline)
				check.Equal(t, "after the return the agent", "acts", a.stands())
				a.checkTold(t, "Acting", "TargetLost", "TargetBack")
			})
		}
	}
}

// A renewal whose answer is lost took effect: the next one builds upon it.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		a := w.start(t, ours)
		a.awaitActing(t, 0)
		w.target.setWeather(losesEveryThird("update"))
		w.hub.setWeather(losesEveryThird("update"))
		for range 60 {
			sleep(time.Minute)
			check.Equal(t, "the agent", "acts", a.stands())
		}
	})
}

func losesEveryThird(verb string) func(context.Context, string, string) (bool, error) {
	made := 0
	return func(_ context.Context, _, asked string) (bool, error) {
		if asked != verb {
			return false, nil
		}
		if made++; made%3 == 0 {
			return true, errRefused
		}
		return false, nil
	}
}

// The process is stopped (SIGSTOP) for an hour in the middle of a renewal, and continues.
// Before any answer arrives, it knows that it may not write. It does not take its own pause
// for an outage of the target.
func TestStoppedProcess(t *testing.T) {
	for name, test := range map[string]struct {
		why    string
		before bool // before the request was sent
		taken  bool
	}{
		"before the renewal was sent": {before: true, taken: true, why: "It finds that another one has the Lease."},
		"after the renewal was sent":  {taken: true, why: "It reads an answer of an hour ago, which is worth nothing."},
		"and nobody wanted the Lease": {before: true, why: "It goes on as if nothing had happened."},
	} {
		inBubble(t, name, func(t *testing.T) {
			t.Log(test.why)
			w := newWorld()
			a := w.start(t, ours)
			a.awaitActing(t, 0)
			goOn := make(chan struct{})
			w.target.setWeather(func(context.Context, string, string) (bool, error) {
				if !test.before {
					return true, stopped(func() { <-goOn })
				}
				<-goOn // ignores the end of the context
				return false, context.DeadlineExceeded
			})
			sleep(DefaultRenewDeadline - 1)
			check.Equal(t, "before the renewal is overdue the agent", "acts", a.stands())
			sleep(1)
			check.Equal(t, "when the renewal is overdue the agent", "does not act", a.stands())
			sleep(time.Hour)
			if test.taken {
				w.target.edit(t, targetLease, takenBy("them"))
			}
			answer := make(chan struct{}) // to its next request
			w.target.setWeather(func(context.Context, string, string) (bool, error) {
				<-answer
				return false, nil
			})
			close(goOn)
			synctest.Wait()
			check.Equal(t, "when the process goes on the agent", "does not act", a.stands())
			close(answer)
			sleep(DefaultRetryPeriod)
			check.Equal(t, "in the end it acts", !test.taken, a.stands() == "acts")
			a.checkTold(t, "Acting")
			if !test.taken {
				return
			}
			a.awaitLoss(t)
		})
	}
}

// The error for an unreachable target must not look like a reset connection. client-go would
// retry until the target is back, and then make an outdated write.
func TestUnreachableIsNoReset(t *testing.T) {
	lost := &targetKeeper{options: Options{}.withDefaults(), lost: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}
	err := lost.check()
	if !errors.Is(err, ErrTargetUnreachable) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) {
		t.Errorf("error %v", err)
	}
}

// A server that has an older version of a Lease than before was restored. What the process knows of other
// objects may never have happened: it ends, and the next one acts.
func TestARestoredServer(t *testing.T) {
	for name, restored := range map[string]func(w *world) (of *server, raised int){
		"the target": func(w *world) (*server, int) { return w.target, 0 },
		"the hub":    func(w *world) (*server, int) { return w.hub, 0 },
		// Other clients have written since, or the restore has raised the versions of what is written next.
		"the target, with raised versions": func(w *world) (*server, int) { return w.target, 1_000_000 },
		"the hub, with raised versions":    func(w *world) (*server, int) { return w.hub, 1_000_000 },
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld()
			a := w.start(t, ours)
			a.awaitActing(t, 0)
			sleep(time.Minute)
			of, raised := restored(w)
			former := of.copied()
			sleep(10 * time.Minute)
			former.next += raised
			of.restore(former)
			select {
			case err := <-a.ended:
				check.Equal(t, "Run", resync.ErrRestored, err, cmpopts.EquateErrors())
			case <-time.After(2 * DefaultHeartbeat):
				t.Fatalf("Run does not end, and the agent %s", a.stands())
			}
			w.start(t, "the next").awaitActing(t, beatsOfHub*DefaultHeartbeat)
		})
	}
}
