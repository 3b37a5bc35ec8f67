package ui

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// mostIndex bounds the index of an element: an observer schema has a place for each element before it.
const mostIndex = 100_000

// parsePlace reads the place of a line.
func parsePlace(text string) (schema.Path, error) {
	place, err := schema.ParsePath(text)
	for _, step := range place {
		if step.Index > mostIndex {
			err = fmt.Errorf("%q is no place", text)
		}
	}
	return place, err
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
