package plan

import (
	"cmp"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// EntryOf returns the entry of a resource in one of the documents. It returns nil if there is none,
// or if two entries match. home is the namespace of entries without one.
func EntryOf(document []map[string]any, resource map[string]any, home string) map[string]any {
	self, err := manifest.Identify(resource)
	if err != nil {
		return nil
	}
	self.Namespace = cmp.Or(self.Namespace, home)
	var found map[string]any
	for _, entry := range document {
		if metadata, _ := entry["metadata"].(map[string]any); metadata["name"] != self.Name {
			continue // most are others, and to identify each costs more
		}
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
