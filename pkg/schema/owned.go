package schema

import "slices"

// WithoutServerOwned returns the schema without the fields that only a server may set: the server's
// own metadata, and the status. A default schema must not observe them, because the agent cannot
// revert what only the server can write. WithoutServerOwned also returns the observed ones among
// these fields.
func (s Schema) WithoutServerOwned() (Schema, []string) {
	var left []string
	for _, path := range serverOwned() {
		if s.Observes(path...) {
			left = append(left, FieldPath(path...).String())
			s = s.Unobserve(path...)
		}
	}
	return s, left
}

// IsServerOwned reports whether a path leads to such a field, or into one.
func IsServerOwned(path Path) bool {
	return slices.ContainsFunc(serverOwned(), func(names []string) bool {
		return startsWith(path, FieldPath(names...))
	})
}

func serverOwned() [][]string {
	return [][]string{
		{"metadata", "creationTimestamp"},
		{"metadata", "deletionGracePeriodSeconds"},
		{"metadata", "deletionTimestamp"},
		{"metadata", "generation"},
		{"metadata", "managedFields"},
		{"metadata", "resourceVersion"},
		{"metadata", "selfLink"},
		{"metadata", "uid"},
		{"status"},
	}
}
