package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/check"
)

func numbered(n int) types.NamespacedName {
	return types.NamespacedName{Namespace: "demo", Name: fmt.Sprint(n)}
}

func never() bool { return false }

// With eight workers, four Applications have a turn. The others are woken in order, one for each that ends.
func TestTurns(t *testing.T) {
	var woken []string
	turns := newTurns(8, func(name types.NamespacedName) { woken = append(woken, name.Name) }, never)
	var taken []int
	for n := range 7 {
		if turns.take(numbered(n)) {
			taken = append(taken, n)
		}
		turns.take(numbered(n)) // asks again: it keeps its turn, or its place
	}
	check.Equal(t, "with a turn", []int{0, 1, 2, 3}, taken)
	for _, waits := range []int{4, 5, 6} {
		turns.end(numbered(waits)) // its pass ends without a turn
	}
	check.Equal(t, "woken while all turns are taken", []string(nil), woken)
	turns.end(numbered(2))
	turns.end(numbered(0))
	check.Equal(t, "woken", []string{"4", "5"}, woken)
	if turns.take(numbered(7)) {
		t.Error("it takes the turn of one that was woken")
	}
	if !turns.take(numbered(4)) {
		t.Error("what was woken has no turn")
	}
	turns.end(numbered(5)) // it was woken, and needs no turn any more
	check.Equal(t, "woken next", []string{"4", "5", "6"}, woken)
}

// An Application that is woken before its pass without a turn has ended keeps the turn for its next pass.
func TestTurnsInAPass(t *testing.T) {
	woken := 0
	turns := newTurns(2, func(types.NamespacedName) { woken++ }, never)
	turns.take(numbered(1))
	check.Equal(t, "the second has a turn", false, turns.take(numbered(2)))
	check.Equal(t, "the second waits", true, turns.isWaiting(numbered(2)))
	check.Equal(t, "they wait", 1, turns.count())
	turns.end(numbered(1))
	turns.end(numbered(2))
	check.Equal(t, "woken", 1, woken)
	check.Equal(t, "the second still waits", true, turns.isWaiting(numbered(2)))
	check.Equal(t, "a third has its turn", false, turns.take(numbered(3)))
	check.Equal(t, "the second has a turn", true, turns.take(numbered(2)))
	check.Equal(t, "the second waits", false, turns.isWaiting(numbered(2)))
}

// A single worker has one turn.
func TestTurnsOfFewWorkers(t *testing.T) {
	for workers, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 64: 32} {
		check.Equal(t, fmt.Sprintf("turns with %d workers", workers), want, newTurns(workers, nil, never).most)
	}
}

// There is no limit until all Applications had their first pass, and afterwards it counts only those that
// began then.
func TestTurnsAfterTheStart(t *testing.T) {
	isCrowded := true
	turns := newTurns(4, nil, func() bool { return isCrowded })
	for n := range 10 {
		check.Equal(t, fmt.Sprintf("%d has a turn", n), true, turns.take(numbered(n)))
	}
	isCrowded = false
	for n := 10; n < 13; n++ {
		check.Equal(t, fmt.Sprintf("%d has a turn", n), n < 12, turns.take(numbered(n)))
	}
}

// simulation is a queue with workers, whose passes ask for their turns and end in any order.
type simulation struct {
	*turns

	random  *rand.Rand
	workers int
	queue   []types.NamespacedName
	running []*run
	// needs are the Applications that need a turn still.
	needs map[types.NamespacedName]bool
}

// run is a pass.
type run struct {
	name           types.NamespacedName
	asked, hasTurn bool
}

func newSimulation(seed uint64, applications int) *simulation {
	s := &simulation{random: rand.New(rand.NewPCG(seed, 1)), needs: map[types.NamespacedName]bool{}}
	s.workers = 1 + s.random.IntN(9)
	s.turns = newTurns(s.workers, func(name types.NamespacedName) { s.queue = append(s.queue, name) }, never)
	for n := range applications {
		s.needs[numbered(n)] = true
		s.queue = append(s.queue, numbered(n))
	}
	return s
}

// begin begins a pass, if there is a worker. A queue hands no Application to two workers.
func (s *simulation) begin() {
	if len(s.queue) == 0 || len(s.running) == s.workers {
		return
	}
	name := s.queue[0]
	s.queue = s.queue[1:]
	if slices.ContainsFunc(s.running, func(r *run) bool { return r.name == name }) {
		s.queue = append(s.queue, name)
		return
	}
	if s.random.IntN(10) == 0 {
		s.needs[name] = false // it is gone
	}
	s.running = append(s.running, &run{name: name})
}

// advance lets any pass ask for a turn, if it needs one, or end. Some with a turn fail, and are tried again.
func (s *simulation) advance() {
	if len(s.running) == 0 {
		return
	}
	at := s.random.IntN(len(s.running))
	r := s.running[at]
	if !r.asked {
		r.asked = true
		r.hasTurn = s.needs[r.name] && s.take(r.name)
		return
	}
	if fails := s.random.IntN(4) == 0; r.hasTurn && fails {
		s.queue = append(s.queue, r.name)
	} else if r.hasTurn {
		s.needs[r.name] = false
	}
	s.running = slices.Delete(s.running, at, at+1)
	s.end(r.name)
}

// In any order of passes, no more have a turn than may, and each Application that needs a turn gets it.
func TestTurnsForgetNobody(t *testing.T) {
	const applications, most = 20, 10_000
	for seed := range uint64(300) {
		s := newSimulation(seed, applications)
		for steps := 0; len(s.queue)+len(s.running) > 0 && steps < most; steps++ {
			if steps < 500 && s.random.IntN(30) == 0 {
				s.queue = append(s.queue, numbered(s.random.IntN(applications))) // an event
			}
			if s.random.IntN(3) == 0 {
				s.begin()
			} else {
				s.advance()
			}
			if have := len(s.busy); have > max(1, s.workers/2) {
				t.Fatalf("seed %d: %d have a turn, with %d workers", seed, have, s.workers)
			}
		}
		check.Equal(t, fmt.Sprintf("seed %d: in the queue and running", seed), 0, len(s.queue)+len(s.running))
		for name, waits := range s.needs {
			if waits {
				t.Fatalf("seed %d: %s was forgotten", seed, name)
			}
		}
	}
}
