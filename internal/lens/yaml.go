package lens

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// longestText is how much of a text is shown, in bytes.
const longestText = 8 << 10

var firstFields = []string{"apiVersion", "kind", "metadata", "spec", "data", "binaryData", "stringData"}

// inOrder returns the names of the fields as people expect them, the status last.
func inOrder(object map[string]any) []string {
	rank := func(name string) int {
		if i := slices.Index(firstFields, name); i >= 0 {
			return i - len(firstFields)
		}
		if name == "status" {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(maps.Keys(object), func(a, b string) int {
		if a, b := rank(a), rank(b); a != b {
			return a - b
		}
		return strings.Compare(a, b)
	})
}

var plainKey = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]{2,}$`)

// keyText returns a key as YAML.
func keyText(name string) string {
	if plainKey.MatchString(name) && !slices.Contains([]string{"yes", "true", "off", "false", "null"}, strings.ToLower(name)) {
		return name
	}
	return scalarText(name)
}

var (
	plainText  = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]{5,}$`) // long enough to be no word of YAML
	quotedText = regexp.MustCompile(`^[0-9]+$`)
)

// scalarText returns a value as YAML, without the end of a very long text. Most values need no encoder,
// which would take most of the time.
func scalarText(value any) string {
	if text, ok := value.(string); ok && len(text) > longestText {
		value = application.Cut(text, longestText)
	}
	switch value := value.(type) {
	case string:
		switch {
		case value == Hidden:
			return "'" + Hidden + "'"
		case plainText.MatchString(value):
			return value
		case quotedText.MatchString(value):
			return `"` + value + `"`
		}
	case int64:
		return strconv.FormatInt(value, 10)
	case bool:
		return strconv.FormatBool(value)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return Hidden
	}
	return strings.TrimSuffix(string(text), "\n")
}

// shortText returns a value on one line, without the end of a very long one.
func shortText(value any) string { return application.Cut(PlainText(value), longestText) }
