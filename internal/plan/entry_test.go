package plan

import (
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

// A resource without a namespace is in that of the Application. It differs from a resource of
// its name elsewhere: fields observed of one are not released from the other.
func TestEntryOf(t *testing.T) {
	entry := func(namespace string) map[string]any {
		metadata := map[string]any{"name": "config"}
		if namespace != "" {
			metadata["namespace"] = namespace
		}
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
	}
	here, demo, other := entry(""), entry("demo"), entry("other")
	cases := []struct {
		name     string
		document []map[string]any
		resource map[string]any
		want     map[string]any
	}{
		{"the very words", []map[string]any{other, here}, here, here},
		{"its namespace is said by now", []map[string]any{other, here}, demo, here},
		{"its namespace is not said any more", []map[string]any{other, demo}, here, demo},
		{"that of another namespace", []map[string]any{here}, other, nil},
		{"the same, the other way round", []map[string]any{other}, here, nil},
		{"two that cannot be told apart", []map[string]any{here, demo}, here, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			check.Equal(t, "entry", c.want, EntryOf(c.document, c.resource, "demo"))
		})
	}
}
