package schema

// Kind is the kind of a [Difference]. It decides how the difference is treated.
type Kind string

const (
	// Changed: the value at the path is not the desired one. If no value is desired, it has to be
	// removed: it has left the spec ([Schema.Released]), or stands in a closed object ([Schema.Align]).
	Changed Kind = "Changed"
	// TooShort: the list at the path has fewer elements than its minimum.
	TooShort Kind = "TooShort"
	// TooLong: the list at the path has more elements than its maximum, or an element a second time.
	TooLong Kind = "TooLong"
	// Moved: the observed elements of the list at the path stand in another order.
	Moved Kind = "Moved"
	// Unknown: the value is observed, but no desired value is known yet. [Schema.LateInitialize]
	// learns it, and there is nothing to revert.
	Unknown Kind = "Unknown"
)

// Difference is one place where an object does not match.
type Difference struct {
	Path Path
	Kind Kind
	// Want is the desired value. For an absent object it is the observed part, with lists of the
	// required length. For TooShort it is the []any of elements to append. In all other cases, nil
	// means that no value can be set.
	Want any
	// Have is the value of the object, nil if it is absent.
	Have any
	// Cut are the indices of the elements to remove, in ascending order.
	Cut []int
	// Moves are made after the cut.
	Moves []Move
	// At are the indices at which the missing elements are inserted one after the other, after the
	// moves. If nil, they are appended.
	At []int
	// Parts are the differences within an element that is restored as a whole.
	Parts Differences
	// Displaces reports that the missing elements replace those of the cut, see [Schema.Displace].
	Displaces bool
}

// Differences are the differences of one object in the order of the schema, with a list after its
// elements.
type Differences []Difference

// Drift returns the differences to revert. [Differences.Patch] omits one of them that no patch can
// remove: an invalid length of the desired list itself.
func (d Differences) Drift() Differences {
	return d.filter(func(difference Difference) bool { return difference.Kind != Unknown })
}

// Unknown returns the differences to learn.
func (d Differences) Unknown() Differences {
	return d.filter(func(difference Difference) bool { return difference.Kind == Unknown })
}

// Details returns the differences for people to read: those within an element that is restored as a
// whole, instead of the element.
func (d Differences) Details() Differences {
	details := make(Differences, 0, len(d))
	for _, difference := range d {
		if len(difference.Parts) > 0 {
			details = append(details, difference.Parts...)
		} else {
			details = append(details, difference)
		}
	}
	return details
}

func (d Differences) filter(keep func(Difference) bool) Differences {
	var kept Differences
	for _, difference := range d {
		if keep(difference) {
			kept = append(kept, difference)
		}
	}
	return kept
}

// mendable reports whether a patch can remove the difference. It cannot remove an unknown value, or
// a length that is also invalid in the desired list.
func (d Difference) mendable() bool {
	switch d.Kind {
	case Changed:
		return true
	case TooShort:
		return len(d.missing()) > 0
	case TooLong:
		return len(d.Cut) > 0
	case Moved:
		return len(d.Moves) > 0
	case Unknown:
	}
	return false
}

func (d Difference) missing() []any { return itemsOf(d.Want) }
