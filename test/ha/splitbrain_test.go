package ha

import (
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Threat A42 of the security specification: two agents act at once after a long pause.
// The acting replica is paused (SIGSTOP, 6 s, with a Lease of 2 s) in the middle of
// drifts and resumes: no drift has two successful writes, and a stale attempt gets 409 or
// is not sent. make verify has 20 rounds.
func TestReplicaThatWasPausedWritesNothingTwice(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 1
	}
	p := newPair(t)
	var all figures
	for round := range rounds {
		t.Run(fmt.Sprint(round+1), func(t *testing.T) { all.add(p.round(t)) })
	}
	t.Logf("in %d rounds %s", rounds, all)
	if all.stopped < rounds*2/3 {
		t.Errorf("only in %d of %d rounds was the replica stopped in the middle of its repairs and found another one in its place", all.stopped, rounds)
	}
}

// figures are the results of rounds.
type figures struct {
	stopped       int // rounds in which the replica was paused before its work was done, and the other one took over
	first, second int // repairs by the paused replica, and by the other one
	late          int // of those by the first, after the second had the Lease
	refused       int // attempts that got 409
	otherwise     int // attempts with another answer, or none
	handOver      []time.Duration
}

func (f *figures) add(other figures) {
	f.stopped += other.stopped
	f.first += other.first
	f.second += other.second
	f.late += other.late
	f.refused += other.refused
	f.otherwise += other.otherwise
	f.handOver = append(f.handOver, other.handOver...)
}

func (f figures) String() string {
	slices.Sort(f.handOver)
	return fmt.Sprintf("(%d of them with a change in the middle) %d repairs by the replica that was stopped, of them %d after the other one had the Lease, and %d by the other one; "+
		"%d attempts got 409 and %d failed otherwise; from the stop to the first repair by the other one: %s",
		f.stopped, f.first, f.late, f.second, f.refused, f.otherwise, f.handOver)
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
		renewals := begin.Requests(t, func(r kit.Request) bool {
			return r.Leads() && r.Object.Name == application.TargetLease(application.LocalCluster)
		})
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

// round pauses the acting replica in the middle of its repairs, and resumes it when the
// other one has done the rest.
func (p pair) round(t *testing.T) figures {
	const (
		stop  = 6 * time.Second
		pause = 5 * time.Millisecond
	)
	s := newShelf(t, 6, 10)
	awaitCalm(t, s.namespace)
	first, second := p.acting(t)
	begin := hub.Mark(t)
	seen := s.begin(t, len(s.objects)/6)
	stream := make(chan error, 1)
	go func() { stream <- s.disturbEach(t.Context(), pause) }()
	seen.awaitMiddle(t)
	first.send(t, syscall.SIGSTOP)
	stopped := time.Now()
	time.Sleep(stop) // the pause under test
	first.send(t, syscall.SIGCONT)
	kit.Must(t, <-stream)

	c := change{shelf: s, begin: begin, leaving: first.credential, coming: second.credential}
	c.awaitRepaired(t, seen)
	f := c.figures(t, stopped)
	t.Log(f)
	p.restart(t)
	return f
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

// figures fails if an object was repaired twice.
func (c change) figures(t *testing.T, stopped time.Time) figures {
	t.Helper()
	left, came := kit.ByCredential(c.leaving), kit.ByCredential(c.coming)
	made := c.begin.Requests(t, func(r kit.Request) bool { return c.isRepair(r) && (left(r) || came(r)) })
	c.checkOnce(t, made)
	done := kit.Select(made, kit.Request.IsAccepted)
	first, second := kit.Select(done, left), kit.Select(done, came)
	f := figures{first: len(first), second: len(second)}
	for _, r := range made {
		switch {
		case r.IsAccepted():
		case r.Status.Code == http.StatusConflict:
			f.refused++
		default:
			f.otherwise++
			t.Logf("%s by %v", r, r.Credentials())
		}
	}
	taken := c.begin.Requests(t, func(r kit.Request) bool {
		return came(r) && r.Leads() && r.Object.Name == application.TargetLease(application.LocalCluster)
	})
	if len(taken) > 0 {
		f.late = len(kit.Select(first, func(r kit.Request) bool { return r.Received.After(taken[0].Ended) }))
	}
	if len(second) > 0 && len(first) > 0 {
		f.stopped = 1
		f.handOver = []time.Duration{since(second[0].Ended, stopped)}
	}
	return f
}
