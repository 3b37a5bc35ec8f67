package habitat

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reading collects all mistakes of a Habitat.
type reading struct{ mistakes field.ErrorList }

// object is an object within a Habitat. Its fields are taken one by one, and the fields
// that are never taken are unknown.
type object struct {
	*reading

	path   *field.Path // nil for the Habitat as a whole
	fields map[string]any
	// taken maps known fields to true, and fields that are known elsewhere to false.
	taken map[string]bool
	// emptyIsUnset: an empty text is an absent one.
	emptyIsUnset bool
}

// object returns the object at the path, or false if there is none. A value of another
// kind is a mistake.
func (r *reading) object(path *field.Path, value any) (object, bool) {
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		r.wrongType(path, value, "an object")
	}
	return object{reading: r, path: path, fields: fields, taken: map[string]bool{}}, ok
}

// at returns the path of a field. Unknown names may be long, or have several lines.
func (o object) at(name string) *field.Path {
	quoted := strconv.Quote(shorten(name))
	return o.path.Child(quoted[1 : len(quoted)-1])
}

// take returns the value of a field, which is then known. Null is an absent value.
func (o object) take(name string) any {
	o.taken[name] = true
	return o.fields[name]
}

// has reports whether a field is set.
func (o object) has(name string) bool {
	value := o.fields[name]
	return value != nil && (value != "" || !o.emptyIsUnset)
}

// child returns a field that is an object.
func (o object) child(name string) (object, bool) {
	child, ok := o.object(o.at(name), o.take(name))
	child.emptyIsUnset = o.emptyIsUnset
	return child, ok
}

// requiredChild returns a field that is an object, and adds a mistake if it is absent.
func (o object) requiredChild(name, wanted string) (object, bool) {
	child, ok := o.child(name)
	if !o.has(name) {
		o.add(field.Required(o.at(name), wanted))
	}
	return child, ok
}

// objects iterates over a list of at most so many objects. Null is a mistake.
func (o object) objects(name string, most int) iter.Seq2[int, object] {
	return func(yield func(int, object) bool) {
		value := o.take(name)
		items, ok := value.([]any)
		switch {
		case !ok && value != nil:
			o.wrongType(o.at(name), value, "a list")
		case len(items) > most:
			o.invalid(o.at(name), fmt.Sprintf("it has %d elements; the maximum is %d", len(items), most))
			return
		}
		for i, item := range items {
			element, ok := o.object(o.at(name).Index(i), item)
			if item == nil {
				o.wrongType(element.path, item, "an object")
			}
			if ok && !yield(i, element) {
				return
			}
		}
	}
}

// text returns a field that is a text, or false if it is absent or no text.
func (o object) text(name string) (string, bool) {
	value := o.take(name)
	text, ok := value.(string)
	if !ok && value != nil {
		o.wrongType(o.at(name), value, "a text")
	}
	return text, ok && (text != "" || !o.emptyIsUnset)
}

// required returns a text of the format that must be set.
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

// optional returns a text that has the format if it is set.
func (o object) optional(name string, of format) string {
	text, ok := o.text(name)
	if ok {
		o.check(o.at(name), text, of)
	}
	return text
}

// count returns a number of Pods, or 0 if the field is absent.
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

// integer returns the integer that a number is. A number of more than 64 bits becomes
// one with the same sign.
func integer(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case float64: // 2.0 is an integer, too
		return int64(max(-1, min(value, math.MaxInt64/2))), value == math.Trunc(value)
	}
	return 0, false
}

// refuse adds a mistake if the object has a field that belongs elsewhere.
func (o object) refuse(name, why string) {
	if o.has(name) {
		o.add(field.Forbidden(o.at(name), why))
	}
	o.taken[name] = false
}

// close adds a mistake for each unknown field.
func (o object) close() {
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(o.taken)), func(name string) bool { return !o.taken[name] })
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		if _, seen := o.taken[name]; !seen && o.has(name) {
			o.add(field.Forbidden(o.at(name), "no such field is known: there are "+strings.Join(known, ", ")))
		}
	}
}

func (r *reading) add(mistake *field.Error) { r.mistakes = append(r.mistakes, mistake) }

// invalid adds a mistake without the value.
func (r *reading) invalid(path *field.Path, wanted string) {
	r.add(field.Invalid(path, field.OmitValueType{}, wanted))
}

// wrongType adds a mistake without the value, which may be secret or long.
func (r *reading) wrongType(path *field.Path, value any, wanted string) {
	r.invalid(path, "it is "+kindOf(value)+", and has to be "+wanted)
}

// format is a rule for texts.
type format struct {
	// wanted describes it to the user: "it has to be ...".
	wanted string
	// most is how many characters are possible, or 0 for any number.
	most int
	is   func(text string) bool
}

// check adds a mistake if a text does not have the format.
func (r *reading) check(at *field.Path, text string, of format) {
	switch length := utf8.RuneCountInString(text); {
	case of.most > 0 && length > of.most:
		r.add(field.Invalid(at, shorten(text), fmt.Sprintf("it has %d characters; the maximum is %d", length, of.most)))
	case !of.is(text):
		r.add(field.Invalid(at, shorten(text), "it has to be "+of.wanted))
	}
}

// kindOf names the kind of a value.
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

// maxShown is how many bytes of a text errors repeat.
const maxShown = 64

// shorten cuts a text to at most maxShown bytes.
func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "..."
}
