package tosca

import (
	"math"
	"strconv"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// textOf returns the text of a value as Krake writes it, which is Python's.
// Within lists and mappings null, and texts with quotes, backslashes or newlines, are
// written as YAML: there YAML would read another value from Python's text.
func textOf(tree *manifest.Tree) string {
	switch value := tree.Value.(type) {
	case nil:
		return "None"
	case string:
		return value
	}
	return flowOf(tree)
}

// flowOf returns the text of a value within a list or a mapping.
func flowOf(tree *manifest.Tree) string {
	switch value := tree.Value.(type) {
	case string:
		return quoted(value)
	case bool:
		if value {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(value, 10)
	case float64:
		return floatText(value)
	case []any:
		var items []string
		for _, item := range tree.Items {
			items = append(items, flowOf(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var fields []string
		for _, field := range tree.Fields {
			fields = append(fields, quoted(field.Name)+": "+flowOf(field.Tree))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	return "null"
}

// quoted returns a text in single quotes, if they mean the same in YAML and Python.
func quoted(text string) string {
	if !strings.ContainsAny(text, `'\`) && !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return "'" + text + "'"
	}
	return strconv.Quote(text) // YAML has all escapes of Go
}

// floatText returns the shortest digits that show a float and no integer.
func floatText(value float64) string {
	size := math.Abs(value)
	if size != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.FormatFloat(value, 'e', -1, 64)
	}
	text := strconv.FormatFloat(value, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
