package reconcile

import (
	"maps"
	"slices"
	"time"
)

const (
	// fastRepairs are done at once, of one field against one rival; manyRepairs
	// against all that there are: a name is quickly made up.
	fastRepairs = 5
	manyRepairs = 15
	// After those, the object is left alone for a while, longer each time.
	firstPause   = time.Second
	longestPause = time.Minute
	// peace is how long a fight must rest to be forgotten.
	peace = 10 * time.Minute
)

// rivalry is one field and who changes it.
type rivalry struct{ field, rival string }

// anybody is the rival of a field's repairs in all.
const anybody = "one name after the other"

// withAnybody counts the fields in all, too.
func withAnybody(about []rivalry) []rivalry {
	all := slices.Clone(about)
	for _, r := range about {
		all = append(all, rivalry{r.field, anybody})
	}
	return all
}

// fast is how many repairs are done at once.
func (r rivalry) fast() int {
	if r.rival == anybody {
		return manyRepairs
	}
	return fastRepairs
}

// fight is how often we have repaired a field against a rival.
type fight struct {
	repairs int
	last    time.Time
}

// fights are those about one object. Each is counted by itself; the pause is
// that of the whole object.
type fights map[rivalry]fight

// repaired counts a repair.
func (f *fights) repaired(about []rivalry, now time.Time) {
	if *f == nil {
		*f = fights{}
	}
	maps.DeleteFunc(*f, func(_ rivalry, one fight) bool { return !now.Before(one.last.Add(peace)) })
	for _, r := range withAnybody(about) {
		one := (*f)[r]
		(*f)[r] = fight{repairs: one.repairs + 1, last: now}
	}
}

// pausedUntil gives when the object may be repaired again, the zero time if it
// may be now.
func (f fights) pausedUntil(about []rivalry, now time.Time) time.Time {
	var until time.Time
	for _, r := range withAnybody(about) {
		end := f[r].last.Add(pause(f[r].repairs - r.fast()))
		if end.After(now) && end.After(until) {
			until = end
		}
	}
	return until
}

// pause is how long to wait after so many repairs more than are done at once.
func pause(over int) time.Duration {
	switch {
	case over < 0:
		return 0
	case over > 10: // 2^10 s is beyond the longest
		return longestPause
	}
	return min(firstPause<<over, longestPause)
}

// contended gives the fights that are going on, in a stable order, and when the
// first of them will be forgotten.
func (f fights) contended(now time.Time) (about []rivalry, forgotten time.Time) {
	for r, one := range f {
		end := one.last.Add(peace)
		if one.repairs < r.fast() || !now.Before(end) {
			continue
		}
		about = append(about, r)
		if forgotten.IsZero() || end.Before(forgotten) {
			forgotten = end
		}
	}
	slices.SortFunc(about, func(a, b rivalry) int {
		return slices.Compare([]string{a.field, a.rival}, []string{b.field, b.rival})
	})
	return about, forgotten
}
