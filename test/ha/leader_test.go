package ha

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/kit"
)

// The leader is killed in the middle of 200 drifts: the other agent repairs the rest, each object is repaired once
// (audit log). The leader is paused while the drifts are made, so that it finds
// all of them when it resumes. It is killed by SIGKILL at the 50th repair. The other agent waits until the Lease
// expires, 15 s after its last renewal.
func TestKilledLeaderIsReplacedAndEachDriftIsRepairedOnce(t *testing.T) {
	s := newShelf(t, 10, 20)
	awaitCalm(t, s.namespace)
	first, second := leader(t)
	c := change{shelf: s, begin: hub.Mark(t), leaving: installed.AgentCredential(first), coming: installed.AgentCredential(second)}
	seen := s.begin(t, 50)
	send(t, first, syscall.SIGSTOP)
	s.disturbAll(t)
	send(t, first, syscall.SIGCONT)
	seen.awaitMiddle(t)
	killed := time.Now()
	kit.Must(t, installed.KillAgent(first))
	startAgain(t)

	c.awaitRepaired(t, seen)
	c.check(t, killed)
}

// Leader election releases the Lease: a hand-over misses no drift and writes nothing twice. The leader is asked to end
// (SIGTERM) during a stream of drifts, which continues without a leader. It releases the Lease, so that the other agent
// need not wait until it expires.
func TestLeaderThatEndsHandsOverWithoutAMissedDrift(t *testing.T) {
	const pause = 40 * time.Millisecond // 200 of them are 8 s
	s := newShelf(t, 10, 20)
	awaitCalm(t, s.namespace)
	first, second := leader(t)
	c := change{shelf: s, begin: hub.Mark(t), leaving: installed.AgentCredential(first), coming: installed.AgentCredential(second)}
	seen := s.begin(t, 50)
	stream := make(chan error, 1)
	go func() { stream <- s.disturbEach(t.Context(), pause) }()
	seen.awaitMiddle(t)
	asked := time.Now()
	if err := installed.StopAgent(first); err != nil {
		t.Error(err)
	}
	t.Logf("the leader ended in %s", time.Since(asked).Round(time.Millisecond))
	startAgain(t)
	kit.Must(t, <-stream)

	c.awaitRepaired(t, seen)
	c.check(t, asked)
	released := c.begin.Requests(t, kit.ByCredential(c.leaving), kit.Of("leases"), func(r kit.Request) bool {
		return r.IsWrite() && r.IsAccepted() && strings.Contains(string(r.Body), `"holderIdentity":""`)
	})
	if len(released) == 0 {
		t.Error("the leader has not released its Lease")
	}
}

// send sends a signal to an agent.
func send(t *testing.T, agent int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(installed.AgentProcess(agent).PID(), signal); err != nil {
		t.Fatalf("send %s to agent %d: %v", signal, agent, err)
	}
}

// startAgain starts the stopped agent when the test is over.
func startAgain(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { kit.Must(t, installed.StartAgent(context.WithoutCancel(t.Context()))) })
}

// change is a change of the leader while the objects of a shelf drift.
type change struct {
	*shelf

	begin           kit.Mark
	leaving, coming string // credentials
}

// isRepair reports whether a request patches an object; patches of other clients are
// included.
func (s *shelf) isRepair(r kit.Request) bool {
	return r.Verb == "patch" && r.Object.Resource == "configmaps" && r.Object.Namespace == s.namespace && slices.Contains(s.objects, r.Object.Name)
}

// awaitRepaired waits until each object is repaired, and until all writes have stopped,
// because a second repair would come later.
func (c change) awaitRepaired(t *testing.T, seen *journal) {
	t.Helper()
	kit.Eventually(t, func() string { return seen.complaint(c.objects) })
	awaitCalm(t, c.namespace)
	if complaint := seen.complaint(c.objects); complaint != "" {
		t.Error(complaint)
	}
}

// check fails unless the audit log has one repair for each object. It also fails if
// both agents acted at the same time.
func (c change) check(t *testing.T, from time.Time) {
	t.Helper()
	left, came := kit.ByCredential(c.leaving), kit.ByCredential(c.coming)
	made := c.begin.Requests(t, func(r kit.Request) bool { return c.isRepair(r) && (left(r) || came(r)) })
	done := kit.Select(made, kit.Request.IsAccepted)
	before, after := kit.Select(done, left), kit.Select(done, came)
	if len(before) == 0 || len(after) == 0 {
		t.Fatalf("%d repairs by the agent that left, and %d by the one that came: that was no change in the middle", len(before), len(after))
	}
	c.checkOnce(t, made)
	last, begun := before[len(before)-1].Received, after[0].Received
	taken := c.begin.Requests(t, func(r kit.Request) bool { return came(r) && r.Leads() })
	if len(taken) == 0 || taken[0].Ended.After(begun) || last.After(begun) {
		t.Fatalf("the agent that left has repaired until %s, and the one that came from %s on; it had the Lease at %v", last, begun, taken)
	}
	t.Logf("%d repairs by the agent that left, %d by the one that came, %d more refused or cut off; it had the Lease after %s, its first repair was done after %s and its last after %s",
		len(before), len(after), len(made)-len(done), since(taken[0].Ended, from), since(after[0].Ended, from), since(after[len(after)-1].Ended, from))
}

// checkOnce counts a repair that the agent had sent when it was killed, even without
// its answer.
func (c change) checkOnce(t *testing.T, made []kit.Request) {
	t.Helper()
	accepted, cutOff := map[string]int{}, map[string]int{}
	for _, r := range made {
		switch {
		case r.IsAccepted():
			accepted[r.Object.Name]++
		case r.IsCutOff():
			cutOff[r.Object.Name]++
		}
	}
	var wrong []string
	for _, name := range c.objects {
		if accepted[name] > 1 || accepted[name] == 0 && cutOff[name] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s %d and %d", name, accepted[name], cutOff[name]))
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%d of %d objects have not one repair that was accepted (and those that were cut off): %s", len(wrong), len(c.objects), strings.Join(wrong, "; "))
	}
}

func since(at, from time.Time) time.Duration { return at.Sub(from).Round(time.Millisecond) }

// awaitCalm waits until the agents have written nothing in a namespace for longer than
// a status write may be delayed.
func awaitCalm(t *testing.T, namespace string) {
	t.Helper()
	const calm = 2 * time.Second
	hub.Mark(t).Calm(t, calm, kit.Request.IsWrite, kit.In(namespace), kit.By(kit.LocalAgent))
}
