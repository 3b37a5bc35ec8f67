package status

import (
	"regexp"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// maxValue bounds a value that is published as it is, in bytes.
const maxValue = 64

// IsPrivate tells of values that may be secrets: all of a Secret, the data of ConfigMaps,
// the values in the environment of containers, their arguments, what is called a password
// in any kind, and annotations and addresses that look as if they had one. Names, labels,
// switches and references to Secrets are none.
//
// An object or a list is private if anything in it may be, by its own path: what is in it
// has to be asked for by itself.
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

// isOfVariable tells of what is said of an environment variable beside its value: its
// name, and where the value is from.
func isOfVariable(path schema.Path) bool {
	return len(path) > 1 && path[0].Index >= 0 && (path[1].Field == "name" && len(path) == 2 || path[1].Field == "valueFrom")
}

// isPrivateAnnotation goes by the name and the value: whole documents are put there.
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

// isReference tells of a path below a field that is called a secret, if it says which
// one, and where it is to be found, and not what it is.
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

// credentials are those of an address, as in https://me:secret@example.org.
var credentials = regexp.MustCompile(`://[^/\s@]*:[^/\s@]*@`)

func hasCredentials(text string) bool {
	return credentials.MatchString(text) || strings.Contains(text, "-----BEGIN ") // a key in PEM
}
