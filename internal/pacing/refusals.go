package pacing

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// The pause after a refusal doubles with each refusal in a row.
const (
	firstRefusalPause   = 5 * time.Second
	longestRefusalPause = 5 * time.Minute
)

// Refusals are the changes of one object that the API server refused. A change with another desired
// or live value is another change.
//
// A refused change is sent again after a pause, because the cause may be elsewhere: a port that is
// taken, a quota, an admission webhook. It is sent again at once if its circumstances change. These
// are a text of the caller: the object, the definition of its kind, and the user's settings.
//
// The nil value has no refusals.
type Refusals struct {
	changes       map[string]refusal
	circumstances string
	// count is the number of refusals in a row, and hurried the number of changed circumstances.
	count, hurried int
	last, until    time.Time
}

type refusal struct {
	reason, message string
	// number counts the refusals of an object.
	number int
	// isDue reports that the change may be sent again.
	isDue bool
}

// Refusal is the answer to one change.
type Refusal struct {
	Change schema.Difference
	// Reason is one of status.Reasons.
	Reason, Message string
}

// Renew makes the changes due if the pause is over. Other circumstances end the pause. If they
// change again and again, they only shorten it.
func (r *Refusals) Renew(circumstances string, now time.Time) {
	if r == nil {
		return
	}
	if circumstances != r.circumstances {
		r.circumstances = circumstances
		if hurry := r.last.Add(pause(r.hurried - fastRepairs)); hurry.Before(r.until) {
			r.until = hurry
		}
		r.hurried++
	}
	if now.Before(r.until) {
		return
	}
	for key, known := range r.changes {
		known.isDue = true
		r.changes[key] = known
	}
}

// Follow records circumstances that the loop changed itself.
func (r *Refusals) Follow(circumstances string) {
	if r != nil {
		r.circumstances = circumstances
	}
}

// Until returns when refused changes are due, the zero time if there are none.
func (r *Refusals) Until() time.Time {
	if r == nil {
		return time.Time{}
	}
	return r.until
}

// Split returns the differences that may be repaired and those that were refused, with the reason
// and the message of the first refusal. Later refusals are about what remained of the change, and
// often only follow from the first. Split forgets refusals of changes that are not among all.
func (r *Refusals) Split(all schema.Differences) (open, refused schema.Differences, first Refusal) {
	if r == nil {
		return all, nil, first
	}
	present := map[string]refusal{}
	var firsts []refusal
	for _, difference := range all {
		key := keyOf(difference)
		known, ok := r.changes[key]
		if ok {
			present[key] = known
		}
		if !ok || known.isDue {
			open = append(open, difference)
			continue
		}
		refused = append(refused, difference)
		if len(firsts) > 0 && known.number < firsts[0].number {
			firsts = nil
		}
		if len(firsts) == 0 || known.number == firsts[0].number {
			firsts = append(firsts, known)
		}
	}
	r.changes = present
	return open, refused, merged(firsts)
}

// merged returns the refusals of one answer as one, with each message once.
func merged(refusals []refusal) (all Refusal) {
	var messages []string
	for _, one := range refusals {
		all.Reason = one.reason
		if !slices.Contains(messages, one.message) {
			messages = append(messages, one.message)
		}
	}
	all.Message = strings.Join(messages, "; ")
	return all
}

// Knows reports whether the change was refused before, and nothing has replaced it since.
func (r *Refusals) Knows(change schema.Difference) bool {
	if r == nil {
		return false
	}
	_, known := r.changes[keyOf(change)]
	return known
}

// Add records the refusals that one evaluation of an answer found, and returns all refusals.
func (r *Refusals) Add(refused []Refusal, circumstances string, now time.Time) *Refusals {
	r = r.begin(circumstances, now)
	number := 0
	for _, known := range r.changes {
		number = max(number, known.number+1)
	}
	for _, one := range refused {
		r.changes[keyOf(one.Change)] = refusal{reason: one.Reason, message: one.Message, number: number}
	}
	return r
}

// AddWhole records only the refusal of a whole object in this revision, and returns it.
func (r *Refusals) AddWhole(revision, message, circumstances string, now time.Time) *Refusals {
	r = r.begin(circumstances, now)
	r.changes = map[string]refusal{revision: {message: message}}
	return r
}

// begin begins a pause. The refusals of one pass, which all have the same time, count once. Circumstances that changed between
// them have ended the pause, so that each begins it again.
func (r *Refusals) begin(circumstances string, now time.Time) *Refusals {
	if r == nil {
		r = &Refusals{}
	}
	if r.changes == nil {
		r.changes = map[string]refusal{}
	}
	r.circumstances = circumstances
	if r.count == 0 || !r.last.Equal(now) {
		r.last = now
		r.count++
	}
	r.until = now.Add(doubled(firstRefusalPause, r.count-1, longestRefusalPause))
	return r
}

// OfWhole returns the message with which the whole object was refused in this revision. It returns
// none if the object may be sent again.
func (r *Refusals) OfWhole(revision string) (message string, ok bool) {
	if r == nil {
		return "", false
	}
	known, ok := r.changes[revision]
	return known.message, ok && !known.isDue
}

func keyOf(d schema.Difference) string {
	values, err := json.Marshal([]any{d.Want, d.Have})
	if err != nil { // not JSON, which no object has
		return d.Path.String()
	}
	return d.Path.String() + " " + string(values)
}

// Named returns the differences at the fields that the API server refused, or above them. If there
// are none, it returns the only difference below such a field. Of several below, the answer does
// not say which one the API server means.
func Named(differences schema.Differences, fields []string) schema.Differences {
	if at := filter(differences, func(path string) bool { return isAnyWithin(fields, path) }); len(at) > 0 {
		return at
	}
	if below := Below(differences, fields); len(below) == 1 {
		return below
	}
	return nil
}

// Below returns the differences at one of the fields, or below it.
func Below(differences schema.Differences, fields []string) schema.Differences {
	return filter(differences, func(path string) bool {
		return slices.ContainsFunc(fields, func(field string) bool { return IsWithin(path, field) })
	})
}

func filter(differences schema.Differences, is func(path string) bool) schema.Differences {
	var found schema.Differences
	for _, difference := range differences {
		if is(difference.Path.String()) {
			found = append(found, difference)
		}
	}
	return found
}

func isAnyWithin(fields []string, path string) bool {
	return slices.ContainsFunc(fields, func(field string) bool { return IsWithin(field, path) })
}

// unquoted is a path as API servers write it: data[a.b] and not data["a.b"].
var unquoted = strings.NewReplacer(`["`, "[", `"]`, "]")

// IsWithin reports whether a path leads to a field, or below it. API servers write paths in other
// ways, too.
func IsWithin(path, field string) bool {
	rest, ok := strings.CutPrefix(unquoted.Replace(path), unquoted.Replace(field))
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
