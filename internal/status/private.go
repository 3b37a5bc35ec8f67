package status

import (
	"regexp"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// maxValue bounds the bytes of a value that is published unchanged.
const maxValue = 64

// IsPrivate reports whether a value may be a secret. That holds for everything in a Secret, the
// data of ConfigMaps, and the arguments and environment values of containers. It also holds for a
// field of any kind whose name suggests a secret, and for annotations and addresses that seem to
// contain one. Names, labels, booleans and references to Secrets are not private.
//
// For an object or a list, IsPrivate looks at its own path. The caller must ask for each value in it.
func IsPrivate(kind string, path schema.Path, value any) bool {
	if kind == "Secret" {
		return true
	}
	if _, isSwitch := value.(bool); isSwitch {
		return false
	}
	for i, step := range path {
		if isCalledSecret(step.Field) && !isReference(path[i:]) {
			return true
		}
		switch step.Field {
		case "data", "binaryData", "stringData", "args", "command":
			return true
		case "env":
			return !isOfVariable(path[i+1:])
		case "annotations":
			return isPrivateAnnotation(path[i+1:], value)
		}
	}
	text, _ := value.(string)
	return hasCredentials(text)
}

// isOfVariable reports whether a path leads to the name of an environment variable, or to the source of
// its value.
func isOfVariable(path schema.Path) bool {
	return len(path) > 1 && path[0].Index >= 0 && (path[1].Field == "name" && len(path) == 2 || path[1].Field == "valueFrom")
}

// isPrivateAnnotation decides by name and value, because some annotations contain whole documents.
func isPrivateAnnotation(path schema.Path, value any) bool {
	text, isText := value.(string)
	if len(path) != 1 || !isText {
		return true
	}
	name := strings.ToLower(path[0].Field)
	return isAnyIn(name, "key", "auth", "pass", "cert") || isCalledSecret(name) ||
		len(text) > maxValue || strings.ContainsAny(text, "{}\n") || isCalledSecret(text) || hasCredentials(text)
}

func isCalledSecret(name string) bool {
	return isAnyIn(strings.ToLower(name), "password", "secret", "token", "credential")
}

func isAnyIn(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// isReference reports whether the field only names or locates a secret. The path is below a field
// whose name suggests a secret.
func isReference(path schema.Path) bool {
	first, last := path[0].Field, path[len(path)-1].Field
	switch {
	case strings.HasSuffix(first, "Ref"), first == "serviceAccountToken":
		return true
	case last == "name", strings.HasSuffix(last, "Name"):
		return true
	case first == "secret" && len(path) > 1: // a volume
		return path[1].Field == "defaultMode" || path[1].Field == "items" && len(path) == 4
	}
	return false
}

// credentials matches the credentials in an address such as https://me:secret@example.org.
var credentials = regexp.MustCompile(`://[^/\s@]*:[^/\s@]*@`)

func hasCredentials(text string) bool {
	return credentials.MatchString(text) || strings.Contains(text, "-----BEGIN ") // a key in PEM
}
