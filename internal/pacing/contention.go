package pacing

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// fastRepairs limits the repairs of one field against one competing writer without a pause. manyRepairs
	// does so for all competing writers together, because a competing writer can invent names.
	fastRepairs = 5
	manyRepairs = 15
	// The pause after these repairs doubles with each repair.
	firstPause   = time.Second
	longestPause = time.Minute
	// peace is the time without repairs after which contention is forgotten.
	peace = 10 * time.Minute
)

// Contention is a field and the competing writer: the manager that changes it.
type Contention struct{ Field, Writer string }

// anyWriter counts the repairs of a field against all competing writers.
const anyWriter = "one name after the other"

// withAnyWriter adds the counter of each field against all competing writers.
func withAnyWriter(about []Contention) []Contention {
	all := slices.Clone(about)
	for _, r := range about {
		all = append(all, Contention{r.Field, anyWriter})
	}
	return all
}

// fast is the number of repairs without a pause.
func (r Contention) fast() int {
	if r.Writer == anyWriter {
		return manyRepairs
	}
	return fastRepairs
}

// repairs counts those of a field against a competing writer.
type repairs struct {
	count int
	last  time.Time
}

// Contentions are those about one object. Each is counted separately, but a pause applies to the
// whole object.
type Contentions map[Contention]repairs

// Record counts a repair.
func (f *Contentions) Record(about []Contention, now time.Time) {
	if *f == nil {
		*f = Contentions{}
	}
	maps.DeleteFunc(*f, func(_ Contention, one repairs) bool { return !now.Before(one.last.Add(peace)) })
	for _, r := range withAnyWriter(about) {
		one := (*f)[r]
		(*f)[r] = repairs{count: one.count + 1, last: now}
	}
}

// PausedUntil returns when the object may be repaired again, the zero time if it may be now.
func (f Contentions) PausedUntil(about []Contention, now time.Time) time.Time {
	var until time.Time
	for _, r := range withAnyWriter(about) {
		end := f[r].last.Add(pause(f[r].count - r.fast()))
		if end.After(now) && end.After(until) {
			until = end
		}
	}
	return until
}

// Ongoing returns the present contention in a stable order, and the time when the first of them is
// forgotten.
func (f Contentions) Ongoing(now time.Time) (about []Contention, forgotten time.Time) {
	for r, one := range f {
		end := one.last.Add(peace)
		if one.count < r.fast() || !now.Before(end) {
			continue
		}
		about = append(about, r)
		if forgotten.IsZero() || end.Before(forgotten) {
			forgotten = end
		}
	}
	slices.SortFunc(about, func(a, b Contention) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Writer, b.Writer))
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
