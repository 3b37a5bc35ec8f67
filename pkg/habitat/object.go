package habitat

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxShown is how many bytes of a text errors repeat.
const maxShown = 64

// reading is how an object is read: all mistakes are kept.
type reading struct{ mistakes field.ErrorList }

// object is one within a Habitat. Its fields are taken one by one, and what nobody
// takes is unknown.
type object struct {
	*reading

	path   *field.Path
	fields map[string]any
	// taken has what is known here, and false for what is known elsewhere.
	taken map[string]bool
	// emptyIsUnset: a text without anything in it is an absent one.
	emptyIsUnset bool
}

// root gives the object as a whole, whose path is empty.
func (r *reading) root(fields map[string]any) object {
	return object{reading: r, fields: fields, taken: map[string]bool{}}
}

// object gives what is at the path, or false if it is no object, which is a mistake
// unless there is none.
func (r *reading) object(path *field.Path, value any) (object, bool) {
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		r.wrongType(path, value, "an object")
	}
	return object{reading: r, path: path, fields: fields, taken: map[string]bool{}}, ok
}

// at is the path of a field. Names that nobody knows may be long, or of several lines.
func (o object) at(name string) *field.Path {
	quoted := strconv.Quote(shorten(name))
	name = quoted[1 : len(quoted)-1]
	if o.path == nil {
		return field.NewPath(name)
	}
	return o.path.Child(name)
}

// take gives the value of a field, which is known then. Null is none.
func (o object) take(name string) any {
	o.taken[name] = true
	return o.fields[name]
}

// has tells if there is a field.
func (o object) has(name string) bool {
	value := o.fields[name]
	return value != nil && (value != "" || !o.emptyIsUnset)
}

// child gives a field that is an object.
func (o object) child(name string) (object, bool) {
	child, ok := o.object(o.at(name), o.take(name))
	child.emptyIsUnset = o.emptyIsUnset
	return child, ok
}

// requiredChild tells if the field is missing.
func (o object) requiredChild(name, wanted string) (object, bool) {
	child, ok := o.child(name)
	if !o.has(name) {
		o.add(field.Required(o.at(name), wanted))
	}
	return child, ok
}

// list gives a field that is a list of at most so many elements.
func (o object) list(name string, most int) []any {
	value := o.take(name)
	items, ok := value.([]any)
	switch {
	case !ok && value != nil:
		o.wrongType(o.at(name), value, "a list")
	case len(items) > most:
		o.invalid(o.at(name), fmt.Sprintf("it has %d elements, and at most %d are possible", len(items), most))
		return nil
	}
	return items
}

// text gives a field that is a text, or false if there is none, or no text.
func (o object) text(name string) (string, bool) {
	value := o.take(name)
	text, ok := value.(string)
	if !ok && value != nil {
		o.wrongType(o.at(name), value, "a text")
	}
	return text, ok && (text != "" || !o.emptyIsUnset)
}

// required gives a field that must be there, and be of the format.
func (o object) required(name string, of format) string {
	text, ok := o.text(name)
	switch {
	case ok && text != "":
		o.check(o.at(name), text, of)
	case ok || !o.has(name):
		o.add(field.Required(o.at(name), of.wanted))
	}
	return text
}

// optional gives a field that is of the format if it is there.
func (o object) optional(name string, of format) string {
	text, ok := o.text(name)
	if ok {
		o.check(o.at(name), text, of)
	}
	return text
}

// count gives a field that is a number of Pods; an absent one is none.
func (o object) count(name string) int32 {
	value := o.take(name)
	if value == nil {
		return 0
	}
	number, ok := integer(value)
	switch {
	case !ok:
		o.wrongType(o.at(name), value, "an integer")
	case number < 0 || number > math.MaxInt32:
		o.add(field.Invalid(o.at(name), value, fmt.Sprintf("it has to be at least 0, and at most %d", math.MaxInt32)))
	default:
		return int32(number)
	}
	return 0
}

// integer gives the integer that a number is. Of those that no 64 bits hold only the
// sign is right.
func integer(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case float64: // 2.0 is an integer, too
		return int64(max(-1, min(value, math.MaxInt64/2))), value == math.Trunc(value)
	}
	return 0, false
}

// refuse says why a field that is known elsewhere has no place here.
func (o object) refuse(name, why string) {
	if o.has(name) {
		o.add(field.Forbidden(o.at(name), why))
	}
	o.taken[name] = false
}

// close tells of all fields that were not taken.
func (o object) close() {
	var known []string
	for _, name := range slices.Sorted(maps.Keys(o.taken)) {
		if o.taken[name] {
			known = append(known, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		if _, seen := o.taken[name]; !seen && o.has(name) {
			o.add(field.Forbidden(o.at(name), "no such field is known: there are "+strings.Join(known, ", ")))
		}
	}
}

func (r *reading) add(mistake *field.Error) { r.mistakes = append(r.mistakes, mistake) }

// invalid does not repeat the value.
func (r *reading) invalid(path *field.Path, wanted string) {
	r.add(field.Invalid(path, field.OmitValueType{}, wanted))
}

// wrongType does not repeat the value, either: it may be a secret one, or a long one.
func (r *reading) wrongType(path *field.Path, value any, wanted string) {
	r.invalid(path, "it is "+kindOf(value)+", and has to be "+wanted)
}

// kindOf says what a value is.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return fmt.Sprintf("a value of Go's type %T", value)
}

// shorten gives the beginning of a long text.
func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}
