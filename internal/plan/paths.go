package plan

import (
	"slices"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// IsAmong reports whether a path is the path of one of the differences, or below it. It ignores
// indices, because one has indices of desired elements, and the other of live ones.
func IsAmong(differences schema.Differences, path schema.Path) bool {
	fields := path.Names()
	return slices.ContainsFunc(differences, func(d schema.Difference) bool {
		above := d.Path.Names()
		return len(above) <= len(fields) && slices.Equal(above, fields[:len(above)])
	})
}
