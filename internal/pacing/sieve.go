package pacing

import (
	"slices"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Sieve finds which differences of a refused patch the API server accepts together. The caller
// sends each candidate as a dry run, and records the answer:
//
//	for candidate, ok := s.Next(); ok; candidate, ok = s.Next() {
//		s.Record(accepted(candidate))
//	}
//
// A candidate has all accepted differences, and some more. A refused candidate is halved, so that
// few bad differences among many cost few requests.
type Sieve struct {
	all      schema.Differences
	accepted []bool
	// groups are the open groups of indices, the next one first. refused are the single differences
	// that were refused since the last one was accepted, and alone those before.
	groups         [][]int
	refused, alone []int
}

// NewSieve returns a sieve for the differences of a patch. The API server may have refused it
// because of the suspects, which are tried last. It was refused as a whole.
func NewSieve(all, suspects schema.Differences) *Sieve {
	s := &Sieve{all: all, accepted: make([]bool, len(all))}
	var innocent, suspected []int
	for i, difference := range all {
		isSuspect := slices.ContainsFunc(suspects, func(other schema.Difference) bool { return slices.Equal(other.Path, difference.Path) })
		if isSuspect {
			suspected = append(suspected, i)
		} else {
			innocent = append(innocent, i)
		}
	}
	switch {
	case len(innocent) == 0:
		s.push(halved(suspected)...)
	case len(suspected) == 0:
		s.push(halved(innocent)...)
	default:
		s.push(innocent)
		s.groups = append(s.groups, halved(suspected)...)
	}
	return s
}

// push inserts groups that are tried next.
func (s *Sieve) push(groups ...[]int) { s.groups = slices.Concat(groups, s.groups) }

func halved(group []int) [][]int {
	if len(group) < 2 {
		return [][]int{group}
	}
	return [][]int{group[:len(group)/2], group[len(group)/2:]}
}

// Next returns the next candidate, in the order of the patch, until all differences are known.
func (s *Sieve) Next() (candidate schema.Differences, more bool) {
	if len(s.groups) == 0 {
		return nil, false
	}
	return s.pick(func(i int) bool { return s.accepted[i] || slices.Contains(s.groups[0], i) }), true
}

// Single returns the difference that the present candidate adds, if it is one only.
func (s *Sieve) Single() (added schema.Difference, ok bool) {
	if len(s.groups) == 0 || len(s.groups[0]) != 1 {
		return added, false
	}
	return s.all[s.groups[0][0]], true
}

// Record records whether the API server accepts the candidate.
func (s *Sieve) Record(accepts bool) {
	group := s.groups[0]
	s.groups = s.groups[1:]
	switch {
	case accepts:
		for _, i := range group {
			s.accepted[i] = true
		}
		// A difference that depends on these was perhaps refused without them.
		s.alone, s.refused = append(s.alone, s.refused...), nil
	case len(group) > 1:
		s.push(halved(group)...)
	default:
		s.refused = append(s.refused, group[0])
	}
	if len(s.groups) == 0 && len(s.alone) > 0 {
		for _, i := range s.alone {
			s.groups = append(s.groups, []int{i})
		}
		s.alone = nil
	}
}

// Accepted returns the differences that the API server accepts together.
func (s *Sieve) Accepted() schema.Differences {
	return s.pick(func(i int) bool { return s.accepted[i] })
}

// Refused returns all other differences.
func (s *Sieve) Refused() schema.Differences {
	return s.pick(func(i int) bool { return !s.accepted[i] })
}

func (s *Sieve) pick(is func(int) bool) schema.Differences {
	var picked schema.Differences
	for i, difference := range s.all {
		if is(i) {
			picked = append(picked, difference)
		}
	}
	return picked
}
