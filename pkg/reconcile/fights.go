package reconcile

import (
	"maps"
	"slices"
	"time"
)

const (
	// fastRepairs are done at once, whoever it is that changes a field.
	fastRepairs = 5
	// After those, the object is left alone for a while, longer each time.
	firstPause   = time.Second
	longestPause = time.Minute
	// peace is how long a fight must rest to be forgotten.
	peace = 10 * time.Minute
)

// rivalry is one field and who changes it.
type rivalry struct{ field, rival string }

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
	for _, r := range about {
		one := (*f)[r]
		(*f)[r] = fight{repairs: one.repairs + 1, last: now}
	}
}

// pausedUntil gives when the object may be repaired again, the zero time if it
// may be now.
func (f fights) pausedUntil(about []rivalry, now time.Time) time.Time {
	var until time.Time
	for _, r := range about {
		if one, ok := f[r]; ok && one.until().After(now) && one.until().After(until) {
			until = one.until()
		}
	}
	return until
}

func (f fight) until() time.Time { return f.last.Add(pause(f.repairs)) }

func pause(repairs int) time.Duration {
	over := repairs - fastRepairs
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
		if one.repairs < fastRepairs || !now.Before(end) {
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
