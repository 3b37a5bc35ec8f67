package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The limits of a text.
const (
	// MaxBytes is its maximum length.
	MaxBytes = 4 << 20
	// MaxResources is its maximum number of resources.
	MaxResources = 300
	// MaxValues is its maximum number of texts, numbers, objects and lists. An empty list has two bytes
	// of text, and hundreds of bytes in memory and in the documents that are computed of it.
	MaxValues = 50_000
	// MaxDepth is the maximum nesting of objects and lists. All recursive functions of this project
	// rely on it.
	MaxDepth = 64
)

// CountValues returns the number of texts, numbers, objects and lists in a value, including itself.
func CountValues(value any) int {
	count := 1
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			count += CountValues(field)
		}
	case []any:
		for _, item := range value {
			count += CountValues(item)
		}
	}
	return count
}

// errValues is the error of a text with more than MaxValues.
var errValues = fmt.Errorf("more than %d values, which are texts, numbers, objects and lists: split the text", MaxValues)

// TooDeep reports whether objects and lists are nested deeper than MaxDepth.
func TooDeep(value any) bool { return deeperThan(MaxDepth, value) }

func deeperThan(depth int, value any) bool {
	var parts []any
	switch value := value.(type) {
	case map[string]any:
		parts = slices.Collect(maps.Values(value))
	case []any:
		parts = value
	default:
		return false
	}
	return depth == 0 || slices.ContainsFunc(parts, func(part any) bool { return deeperThan(depth-1, part) })
}

// errDigits is the error of an integer that would become a float.
var errDigits = errors.New("an integer has more digits than 64 bits hold, and would lose some: quote it if it is a text")

// fewestDigits is the length of the shortest integer beyond an int64, which is hexadecimal with its 0x.
const fewestDigits = 18

// losesDigits reports whether the text is an integer, in any base, beyond an int64.
func losesDigits(text string) bool {
	if len(text) < fewestDigits {
		return false
	}
	_, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
	return errors.Is(err, strconv.ErrRange)
}
