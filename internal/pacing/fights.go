package pacing

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// fastRepairs limits the repairs of one field against one rival without a pause. manyRepairs
	// does so for all rivals together, because a rival can invent names.
	fastRepairs = 5
	manyRepairs = 15
	// The pause after these repairs doubles with each repair.
	firstPause   = time.Second
	longestPause = time.Minute
	// peace is the time without repairs after which a fight is forgotten.
	peace = 10 * time.Minute
)

// Rivalry is a field and the manager that changes it.
type Rivalry struct{ Field, Rival string }

// anyRival counts the repairs of a field against all rivals.
const anyRival = "one name after the other"

// withAnyRival adds the counter of each field against all rivals.
func withAnyRival(about []Rivalry) []Rivalry {
	all := slices.Clone(about)
	for _, r := range about {
		all = append(all, Rivalry{r.Field, anyRival})
	}
	return all
}

// fast is the number of repairs without a pause.
func (r Rivalry) fast() int {
	if r.Rival == anyRival {
		return manyRepairs
	}
	return fastRepairs
}

// fight counts the repairs of a field against a rival.
type fight struct {
	repairs int
	last    time.Time
}

// Fights are the fights about one object. Each is counted separately, but a pause applies to the
// whole object.
type Fights map[Rivalry]fight

// Record counts a repair.
func (f *Fights) Record(about []Rivalry, now time.Time) {
	if *f == nil {
		*f = Fights{}
	}
	maps.DeleteFunc(*f, func(_ Rivalry, one fight) bool { return !now.Before(one.last.Add(peace)) })
	for _, r := range withAnyRival(about) {
		one := (*f)[r]
		(*f)[r] = fight{repairs: one.repairs + 1, last: now}
	}
}

// PausedUntil returns when the object may be repaired again, the zero time if it may be now.
func (f Fights) PausedUntil(about []Rivalry, now time.Time) time.Time {
	var until time.Time
	for _, r := range withAnyRival(about) {
		end := f[r].last.Add(pause(f[r].repairs - r.fast()))
		if end.After(now) && end.After(until) {
			until = end
		}
	}
	return until
}

// Ongoing returns the present fights in a stable order, and the time when the first of them is
// forgotten.
func (f Fights) Ongoing(now time.Time) (about []Rivalry, forgotten time.Time) {
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
	slices.SortFunc(about, func(a, b Rivalry) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Rival, b.Rival))
	})
	return about, forgotten
}

// pause returns the pause after this number of repairs beyond those without a pause.
func pause(over int) time.Duration {
	if over < 0 {
		return 0
	}
	return doubled(firstPause, over, longestPause)
}

// doubled returns a pause after it has doubled this often.
func doubled(first time.Duration, often int, longest time.Duration) time.Duration {
	return min(first<<min(often, 10), longest) // 2^10 exceeds each of the longest pauses
}
