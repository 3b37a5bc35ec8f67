package ui

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// The page has the place of each line. It is shorter than JSON, and, unlike a JSON Pointer, says which steps are
// indices: spec/ports/~n0/port.
const indexMark = "~n"

var (
	escapes   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapes = strings.NewReplacer("~0", "~", "~1", "/")
)

// placeText returns a place for [parsePlace], empty for one that no observer schema can have.
func placeText(place schema.Path) string {
	steps := make([]string, 0, len(place))
	for _, step := range place {
		if step.Index >= 0 {
			steps = append(steps, indexMark+strconv.Itoa(step.Index))
		} else {
			steps = append(steps, escapes.Replace(step.Field))
		}
	}
	return strings.Join(steps, "/")
}

// mostIndex bounds the index of an element: an observer schema has a place for each element before it.
const mostIndex = 100_000

func parsePlace(text string) (schema.Path, error) {
	var place schema.Path
	for step := range strings.SplitSeq(text, "/") {
		digits, isIndex := strings.CutPrefix(step, indexMark)
		if !isIndex {
			place = append(place, schema.Step{Field: unescapes.Replace(step), Index: -1})
			continue
		}
		index, err := strconv.Atoi(digits)
		if err != nil || index < 0 || index > mostIndex {
			return nil, fmt.Errorf("%q is no place", text)
		}
		place = append(place, schema.Step{Index: index})
	}
	return place, nil
}

// parseToggle reads the length of a list, a colon and its place; the length is 0 for a field.
func parseToggle(text string) (lens.Toggle, error) {
	digits, rest, _ := strings.Cut(text, ":")
	length, err := strconv.Atoi(digits)
	if err != nil || length < 0 || length > mostIndex {
		return lens.Toggle{}, fmt.Errorf("%q is no toggle", text)
	}
	place, err := parsePlace(rest)
	return lens.Toggle{Place: place, Length: length}, err
}
