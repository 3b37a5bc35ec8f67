package ha

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Two agents act at once after a long pause: the acting replica is paused (SIGSTOP) in the middle of drifts, until the
// other one has its Lease of 2 s, and resumes. No drift has two successful writes: a stale attempt gets 409 or is not
// sent.
func TestReplicaThatWasPausedWritesNothingTwice(t *testing.T) {
	wanted := 3
	const most = 10 // a fast replica may be done before it is paused
	p := newPair(t)
	for paused, round := 0, 1; paused < wanted; round++ {
		if round > most {
			t.Fatalf("only in %d of %d rounds was the replica paused in the middle of its repairs", paused, most)
		}
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			if p.round(t) {
				paused++
			}
		})
		if t.Failed() {
			return
		}
	}
}

// pair has two replicas with a Lease of 2 s.
type pair [2]*replica

func newPair(t *testing.T) pair {
	t.Helper()
	dismissAgents(t)
	var p pair
	for i := range p {
		p[i] = newReplica(t, fmt.Sprintf("replica-%d", i+1), append([]string{"--kubeconfig", "{hub}"}, shortLease...)...)
		p[i].start(t)
		t.Cleanup(func() { p[i].end(t) })
	}
	return p
}

// acting waits for the next renewal of the Lease on the target, and returns the replica
// that made it, and the other one.
func (p pair) acting(t *testing.T) (acts, waits *replica) {
	t.Helper()
	begin := hub.Mark(t)
	kit.Eventually(t, func() string {
		renewals := begin.Requests(t, isRenewal)
		for i := range p {
			if slices.ContainsFunc(renewals, kit.ByCredential(p[i].credential)) {
				acts, waits = p[i], p[1-i]
				return ""
			}
		}
		return "no replica renews the Lease"
	})
	return acts, waits
}

// round pauses the acting replica in the middle of its repairs, and resumes it when the other one has the Lease and has
// repaired something. It reports whether both have repaired.
func (p pair) round(t *testing.T) (inTheMiddle bool) {
	const pause = 5 * time.Millisecond
	s := newShelf(t, 6, 10)
	awaitCalm(t, s.namespace)
	first, second := p.acting(t)
	begin := hub.Mark(t)
	seen := s.begin(t, len(s.objects)/6)
	stream := make(chan error, 1)
	go func() { stream <- s.disturbEach(t.Context(), pause) }()
	seen.awaitMiddle(t)
	first.send(t, syscall.SIGSTOP)
	kit.Eventually(t, func() string {
		if len(begin.Requests(t, kit.ByCredential(second.credential), isRenewal)) == 0 {
			return "the other replica has not taken the Lease"
		}
		return ""
	})
	first.send(t, syscall.SIGCONT)
	kit.Must(t, <-stream)

	c := change{shelf: s, begin: begin, leaving: first.credential, coming: second.credential}
	c.awaitRepaired(t, seen)
	left, came := kit.ByCredential(c.leaving), kit.ByCredential(c.coming)
	made := begin.Requests(t, func(r kit.Request) bool { return c.isRepair(r) && (left(r) || came(r)) })
	c.checkOnce(t, made)
	done := kit.Select(made, kit.Request.IsAccepted)
	before, after := kit.Select(done, left), kit.Select(done, came)
	t.Logf("%d repairs by the replica that was paused, %d by the other one, %d attempts refused", len(before), len(after), len(made)-len(done))
	p.restart(t)
	return len(before) > 0 && len(after) > 0
}

// isRenewal selects the renewals of the Lease on the target.
func isRenewal(r kit.Request) bool {
	return r.Leads() && r.Object.Name == application.TargetLease(application.LocalCluster)
}

// restart restarts a replica that has lost the Lease, and waits until both are ready.
func (p pair) restart(t *testing.T) {
	t.Helper()
	kit.Eventually(t, func() string {
		for _, r := range p {
			r.restartEnded(t)
		}
		return unready(t, p[:])
	})
}
