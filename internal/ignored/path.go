package ignored

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// errNoPointer is the error of a text that is not a JSON pointer (RFC 6901).
var errNoPointer = errors.New("a JSON pointer starts with a slash")

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// steps lead from an object to a place in it: a text is the name of a field, or the index of an element
// in a JSON pointer. A number is an index, counted from the end if it is negative.
type steps []any

// pointerOf reads a JSON pointer. The empty one is the whole object.
func pointerOf(text string) (steps, error) {
	if text == "" {
		return nil, nil
	}
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return nil, errNoPointer
	}
	var s steps
	for token := range strings.SplitSeq(rest, "/") {
		s = append(s, pointerEscapes.Replace(token))
	}
	return s, nil
}

// places are what a rule selects in an object.
type places struct {
	paths []schema.Path
	// lists are the lists of which the rule selects elements, also if they have no such element.
	lists []schema.Path
}

// placesOf returns the places in an object to which steps lead, without those that do not exist.
func placesOf(object any, all ...steps) places {
	var found places
	for _, s := range all {
		found.add(object, s)
	}
	return found
}

func (f *places) add(value any, s steps) {
	path := schema.Path{}
	for i, step := range s {
		switch parent := value.(type) {
		case map[string]any:
			name, isName := step.(string)
			inner, ok := parent[name]
			if !isName || !ok {
				return
			}
			value, path = inner, below(path, name, -1)
		case []any:
			at, ok := indexOf(step, len(parent))
			if ok && i == len(s)-1 {
				f.lists = append(f.lists, path)
			}
			if !ok || at < 0 || at >= len(parent) {
				return
			}
			value, path = parent[at], below(path, "", at)
		default:
			return
		}
	}
	f.paths = append(f.paths, path)
}

// indexOf returns the index that a step is in a list of a length.
func indexOf(step any, length int) (at int, ok bool) {
	switch step := step.(type) {
	case string:
		at, err := strconv.Atoi(step)
		return at, err == nil
	case int:
		if step < 0 {
			step += length
		}
		return step, true
	}
	return 0, false
}

func below(path schema.Path, field string, index int) schema.Path {
	return append(slices.Clip(path), schema.Step{Field: field, Index: index})
}
