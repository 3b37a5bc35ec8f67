package plan

import (
	"cmp"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// EntryOf returns the entry of a resource in one of the documents, nil if it has none, or if two entries
// match. Home is the namespace of those that have none.
func EntryOf(document []map[string]any, resource map[string]any, home string) map[string]any {
	self, err := manifest.Identify(resource)
	if err != nil {
		return nil
	}
	self.Namespace = cmp.Or(self.Namespace, home)
	var found map[string]any
	for _, entry := range document {
		id, err := manifest.Identify(entry)
		id.Namespace = cmp.Or(id.Namespace, home)
		switch {
		case err != nil || id != self:
		case found != nil:
			return nil
		default:
			found = entry
		}
	}
	return found
}
