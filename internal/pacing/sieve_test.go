package pacing

import (
	"slices"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// sifted runs a sieve against the rule of a server, and counts the requests.
func sifted(all, suspects schema.Differences, accepts func(names []string) bool) (s *Sieve, requests int) {
	s = NewSieve(all, suspects)
	for candidate, more := s.Next(); more; candidate, more = s.Next() {
		requests++
		s.Record(accepts(pathsOf(candidate)))
	}
	return s, requests
}

// A sieve finds the good differences whichever are bad, and asks seldom if few are.
func TestSieve(t *testing.T) {
	many := changes("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p")
	for _, c := range []struct {
		why      string
		all      schema.Differences
		suspects []string
		accepts  func(names []string) bool
		refused  []string
		most     int
	}{
		{"one of two", many[:2], nil, without("b"), []string{"b"}, 2},
		{"the first of two", many[:2], nil, without("a"), []string{"a"}, 3},
		{"all of two", many[:2], nil, without("a", "b"), []string{"a", "b"}, 2},
		{"one of sixteen", many, nil, without("k"), []string{"k"}, 9},
		{"a suspect of sixteen", many, []string{"j", "k"}, without("k"), []string{"k"}, 3},
		{"two of sixteen", many, nil, without("b", "o"), []string{"b", "o"}, 16},
		{"none alone", many[:4], nil, without(), nil, 2},
		{"two that exclude each other", many[:4], nil, func(names []string) bool {
			return !slices.Contains(names, "a") || !slices.Contains(names, "d")
		}, []string{"d"}, 4},
		{"one that needs a later one", many[:4], nil, func(names []string) bool {
			return !slices.Contains(names, "b") && (!slices.Contains(names, "a") || slices.Contains(names, "d"))
		}, []string{"b"}, 8},
	} {
		s, requests := sifted(c.all, changes(c.suspects...), c.accepts)
		check.Equal(t, c.why, c.refused, pathsOf(s.Refused()))
		if accepted := pathsOf(s.Accepted()); !c.accepts(accepted) || len(accepted)+len(c.refused) != len(c.all) {
			t.Errorf("%s: %v is not accepted", c.why, accepted)
		}
		if requests > c.most {
			t.Errorf("%s: %d requests, want at most %d", c.why, requests, c.most)
		}
	}
}

// without accepts all differences but these.
func without(bad ...string) func([]string) bool {
	return func(names []string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(bad, name) })
	}
}

// Before all answers are known, the accepted differences are still in the order of the patch, because
// its indices depend on that.
func TestSieveKeepsTheOrder(t *testing.T) {
	s := NewSieve(changes("a", "b", "c"), changes("a"))
	s.Record(true) // b and c
	candidate, _ := s.Next()
	check.Equal(t, "candidate", []string{"a", "b", "c"}, pathsOf(candidate))
	check.Equal(t, "accepted", []string{"b", "c"}, pathsOf(s.Accepted()))
	check.Equal(t, "refused", []string{"a"}, pathsOf(s.Refused()))
}
