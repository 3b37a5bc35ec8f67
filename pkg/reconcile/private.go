package reconcile

import (
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// IsPrivate tells of values that are shown nowhere: those of Secrets, and of fields
// into which people put passwords: the data of ConfigMaps, the environment and the
// arguments of containers, and what is called so in any kind.
func IsPrivate(kind string, path schema.Path) bool {
	return kind == "Secret" || slices.ContainsFunc(path, func(step schema.Step) bool {
		name := strings.ToLower(step.Field)
		for _, word := range []string{"password", "secret", "token", "credential"} {
			if strings.Contains(name, word) {
				return true
			}
		}
		switch step.Field {
		case "data", "binaryData", "stringData", "env", "args", "command", "annotations", "labels":
			return true
		}
		return false
	})
}
