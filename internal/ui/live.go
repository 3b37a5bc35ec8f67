package ui

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// mostRepairs is how many repairs the page remembers.
const mostRepairs = 50

// live has the present rows and the last repairs. Each change has a number, so that a page asks for
// those after the last one that it has.
type live struct {
	mu      sync.Mutex
	number  int
	rows    map[types.NamespacedName]numberedRow
	repairs []numberedRepair // the newest first
	// problem is why the page is not up to date, empty if it is.
	problem string
	// changed is closed with the next change.
	changed chan struct{}
}

type numberedRow struct {
	Row

	number int
	gone   bool
}

type numberedRepair struct {
	Repair

	number int
}

func newLive() *live {
	return &live{rows: map[types.NamespacedName]numberedRow{}, changed: make(chan struct{})}
}

// news is what a page does not have yet.
type news struct {
	number  int
	rows    []Row
	gone    []types.NamespacedName
	repairs []Repair // the oldest first
	problem string
	// next is closed when there is more.
	next <-chan struct{}
}

// since returns the changes after a number, 0 for all that is present.
func (l *live) since(number int) news {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := news{number: l.number, problem: l.problem, next: l.changed}
	for name, row := range l.rows {
		switch {
		case row.number <= number:
		case !row.gone:
			found.rows = append(found.rows, row.Row)
		case number > 0:
			found.gone = append(found.gone, name)
		}
	}
	slices.SortFunc(found.rows, func(a, b Row) int { return compareNames(a.NamespacedName, b.NamespacedName) })
	for _, repair := range slices.Backward(l.repairs) {
		if repair.number > number {
			found.repairs = append(found.repairs, repair.Repair)
		}
	}
	return found
}

// of returns the number of an Application's last change, 0 if it is not known, and why the page is not
// up to date.
func (l *live) of(name types.NamespacedName) (number int, problem string, next <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rows[name].number, l.problem, l.changed
}

// change runs a function that changes something, and announces it.
func (l *live) change(do func(number int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	do(l.number)
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *live) take(c Change) {
	l.change(func(number int) {
		listed := map[types.NamespacedName]bool{}
		for _, row := range c.Rows {
			listed[row.NamespacedName] = true
			l.rows[row.NamespacedName] = numberedRow{Row: row, number: number}
		}
		gone := slices.Clone(c.Gone)
		if c.Listed {
			l.problem = ""
			for name, row := range l.rows {
				if !row.gone && !listed[name] {
					gone = append(gone, name)
				}
			}
		}
		for _, name := range gone {
			if _, known := l.rows[name]; known {
				l.rows[name] = numberedRow{number: number, gone: true}
			}
		}
		l.remember(number, c.Repairs)
	})
}

// remember keeps the newest repairs.
func (l *live) remember(number int, repairs []Repair) {
	for _, r := range repairs {
		if !slices.ContainsFunc(l.repairs, func(known numberedRepair) bool { return known.Repair == r }) {
			l.repairs = append(l.repairs, numberedRepair{r, number})
		}
	}
	slices.SortStableFunc(l.repairs, func(a, b numberedRepair) int { return b.At.Compare(a.At) })
	l.repairs = l.repairs[:min(len(l.repairs), mostRepairs)]
}

// fail says why the page is not up to date.
func (l *live) fail(problem string) { l.change(func(int) { l.problem = problem }) }
