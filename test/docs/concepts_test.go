package docs

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The table of states in docs/concepts.md has every state, and no other.
func TestStates(t *testing.T) {
	page, err := Read(filepath.Join(root, "docs", "concepts.md"))
	kit.Must(t, err)
	var want, told []string
	for _, state := range application.States() {
		want = append(want, string(state))
	}
	for _, section := range page.Sections {
		for _, part := range section.Parts {
			if section.Anchor != "the-life-of-an-application" || part.Table == nil {
				continue
			}
			for _, row := range part.Table.Rows {
				told = append(told, row[0].Codes...)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(told)
	if !slices.Equal(want, told) {
		t.Errorf("the table has %v, want %v", told, want)
	}
}
