package agent

import (
	"fmt"
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
	check.Equal(t, "it takes the turn of one that was woken", false, turns.take(numbered(7)))
	check.Equal(t, "what was woken has a turn", true, turns.take(numbered(4)))
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
