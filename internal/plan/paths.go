package plan

import (
	"slices"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// IsAmong reports whether a path is the path of one of the differences, or below it. It ignores
// indices, because one has indices of desired elements, and the other of live ones.
func IsAmong(differences schema.Differences, path schema.Path) bool {
	fields := FieldsOf(path)
	return slices.ContainsFunc(differences, func(d schema.Difference) bool {
		above := FieldsOf(d.Path)
		return len(above) <= len(fields) && slices.Equal(above, fields[:len(above)])
	})
}

// FieldsOf returns the field names of a path, without indices.
func FieldsOf(path schema.Path) []string {
	var fields []string
	for _, step := range path {
		if step.Field != "" {
			fields = append(fields, step.Field)
		}
	}
	return fields
}
