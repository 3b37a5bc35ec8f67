package pacing

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Refusals are the changes of one object that the API server refused. The same change is not sent again. A
// change with another desired or live value is another change.
type Refusals map[string]refusal

type refusal struct {
	message string
	// number counts the refusals of an object.
	number int
}

// Split returns the differences that may be repaired, those that were refused, and the message of the first
// refusal. Later refusals are about what remained of the change, and often only follow from the first.
// Split forgets refusals of changes that are not among all.
func (r *Refusals) Split(all schema.Differences) (open, refused schema.Differences, message string) {
	met := Refusals{}
	var first refusal
	for _, difference := range all {
		key := keyOf(difference)
		known, ok := (*r)[key]
		if !ok {
			open = append(open, difference)
			continue
		}
		if met[key] = known; len(refused) == 0 || known.number < first.number {
			first = known
		}
		refused = append(refused, difference)
	}
	*r = met
	return open, refused, first.message
}

// Add records the refusal of changes.
func (r *Refusals) Add(refused schema.Differences, message string) {
	if *r == nil {
		*r = Refusals{}
	}
	next := refusal{message: message}
	for _, known := range *r {
		next.number = max(next.number, known.number+1)
	}
	for _, difference := range refused {
		(*r)[keyOf(difference)] = next
	}
}

// AddWhole records only the refusal of a whole object in this revision.
func (r *Refusals) AddWhole(revision, message string) { *r = Refusals{revision: {message: message}} }

// OfWhole returns the message with which the whole object was refused in this revision.
func (r Refusals) OfWhole(revision string) (message string, ok bool) {
	known, ok := r[revision]
	return known.message, ok
}

func keyOf(d schema.Difference) string {
	values, err := json.Marshal([]any{d.Want, d.Have})
	if err != nil { // not JSON, which no object has
		return d.Path.String()
	}
	return d.Path.String() + " " + string(values)
}

// Named returns the differences at fields that the API server refused. If it names none of their
// fields, Named returns all differences.
func Named(differences schema.Differences, fields []string) schema.Differences {
	var found schema.Differences
	for _, difference := range differences {
		path := difference.Path.String()
		if slices.ContainsFunc(fields, func(field string) bool { return isWithin(path, field) || isWithin(field, path) }) {
			found = append(found, difference)
		}
	}
	if len(found) == 0 {
		return differences
	}
	return found
}

// isWithin reports whether a path leads to a field, or below it.
func isWithin(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
