package tosca

import (
	"math"
	"strconv"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// textOf gives the text of a value as the reference has it, which is that of Python.
// Only within lists and mappings, where YAML would not read the same value from it,
// it is YAML's: null, and texts with quotes, backslashes or newlines.
func textOf(tree *manifest.Tree) string {
	switch value := tree.Value.(type) {
	case nil:
		return "None"
	case string:
		return value
	}
	var text strings.Builder
	writeFlow(&text, tree)
	return text.String()
}

func writeFlow(to *strings.Builder, tree *manifest.Tree) {
	switch value := tree.Value.(type) {
	case nil:
		to.WriteString("null")
	case string:
		to.WriteString(quoted(value))
	case bool:
		to.WriteString(map[bool]string{true: "True", false: "False"}[value])
	case int64:
		to.WriteString(strconv.FormatInt(value, 10))
	case float64:
		to.WriteString(floatText(value))
	case []any:
		to.WriteString("[")
		for i, item := range tree.Items {
			to.WriteString(separator(i))
			writeFlow(to, item)
		}
		to.WriteString("]")
	case map[string]any:
		to.WriteString("{")
		for i, field := range tree.Fields {
			to.WriteString(separator(i) + quoted(field.Name) + ": ")
			writeFlow(to, field.Tree)
		}
		to.WriteString("}")
	}
}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ", "
}

// quoted gives a text within single quotes, if that means to YAML what it means to
// Python.
func quoted(text string) string {
	if !strings.ContainsAny(text, `'\`) && !strings.ContainsFunc(text, isSpecial) {
		return "'" + text + "'"
	}
	return strconv.Quote(text) // YAML has all escapes of Go
}

func isSpecial(r rune) bool { return !strconv.IsPrint(r) }

// floatText gives the shortest digits, and some that show it is no integer.
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
