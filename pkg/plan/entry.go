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
	var found map[string]any
	for _, entry := range document {
		id, err := manifest.Identify(entry)
		switch {
		case err != nil || !sameEntry(id, self, home):
		case found != nil:
			return nil
		default:
			found = entry
		}
	}
	return found
}

// sameEntry compares identities in documents, where a namespace may be missing.
func sameEntry(a, b manifest.ID, home string) bool {
	a.Namespace, b.Namespace = cmp.Or(a.Namespace, home), cmp.Or(b.Namespace, home)
	return a == b
}
