package agent

import (
	"fmt"
	"math/rand/v2"
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

// In any order of events, no more have a turn than may, and each Application that needs a turn gets it.
func TestTurnsForgetNobody(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		const many = 20
		workers := 1 + random.IntN(9)
		var queue []types.NamespacedName
		turns := newTurns(workers, func(name types.NamespacedName) { queue = append(queue, name) }, never)
		needs := map[types.NamespacedName]bool{}
		for n := range many {
			needs[numbered(n)] = true
			queue = append(queue, numbered(n))
		}
		running, withTurn := map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
		for steps := 0; len(queue)+len(running) > 0; steps++ {
			if steps > 10_000 {
				t.Fatalf("seed %d: no end", seed)
			}
			if random.IntN(30) == 0 && steps < 500 {
				queue = append(queue, numbered(random.IntN(many))) // an event
			}
			if random.IntN(2) == 0 && len(queue) > 0 && len(running) < workers {
				name := queue[0]
				queue = queue[1:]
				if running[name] {
					queue = append(queue, name) // a queue hands no Application to two workers
					continue
				}
				running[name] = true
				if random.IntN(10) == 0 {
					needs[name] = false // it is gone, or was read before its change
				}
				if needs[name] && turns.take(name) {
					withTurn[name] = true
				}
			} else if len(running) > 0 {
				for name := range running {
					delete(running, name)
					if withTurn[name] {
						delete(withTurn, name)
						needs[name] = false
					}
					turns.end(name)
					break
				}
			}
			if len(withTurn) > max(1, workers/2) {
				t.Fatalf("seed %d: %d have a turn, with %d workers", seed, len(withTurn), workers)
			}
		}
		for name, waits := range needs {
			if waits {
				t.Fatalf("seed %d: %s was forgotten", seed, name)
			}
		}
	}
}
