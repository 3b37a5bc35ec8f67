package docs

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The picture and the table of docs/concepts.md have all states, and each can be reached
// from the beginning.
func TestStates(t *testing.T) {
	page, err := Read(filepath.Join(root, "docs", "concepts.md"))
	kit.Must(t, err)
	at := slices.IndexFunc(page.Sections, func(s Section) bool { return s.Anchor == "the-life-of-an-application" })
	if at < 0 {
		t.Fatal("there is no life of an Application")
	}
	var want []string
	for _, state := range application.States() {
		want = append(want, string(state))
	}
	slices.Sort(want)
	var drawn, told []string
	for _, part := range page.Sections[at].Parts {
		switch {
		case part.Block != nil && part.Block.Is("mermaid"):
			drawn = reachable(t, part.Block.Text)
		case part.Table != nil:
			for _, row := range part.Table.Rows {
				told = append(told, row[0].Codes...)
			}
		}
	}
	slices.Sort(told)
	if diff := cmp.Diff(want, drawn); diff != "" {
		t.Errorf("the states that the picture leads to: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("the states in the table: -want +got:\n%s", diff)
	}
}

// beginning is where the picture begins, and ends.
const beginning = "[*]"

var transition = regexp.MustCompile(`^(\S+) --> (\S+): \S`)

// reachable returns the states that can be reached in a picture, sorted. The end can be
// reached from each, too.
func reachable(t *testing.T, picture string) []string {
	t.Helper()
	forth, back := map[string][]string{}, map[string][]string{}
	lines := strings.Split(strings.TrimSpace(picture), "\n")
	for _, line := range lines[1:] {
		arrow := transition.FindStringSubmatch(strings.TrimSpace(line))
		if arrow == nil {
			t.Fatalf("%q is no transition with what leads to it", line)
		}
		forth[arrow[1]] = append(forth[arrow[1]], arrow[2])
		back[arrow[2]] = append(back[arrow[2]], arrow[1])
	}
	from, to := reach(forth), reach(back)
	if diff := cmp.Diff(from, to); diff != "" {
		t.Errorf("what the beginning leads to, and what leads to the end, are not the same:\n%s", diff)
	}
	return from
}

// reach returns the states that can be reached from the beginning.
func reach(arrows map[string][]string) []string {
	seen := map[string]bool{}
	next := []string{beginning}
	for len(next) > 0 {
		state := next[0]
		next = next[1:]
		for _, other := range arrows[state] {
			if other != beginning && !seen[other] {
				seen[other] = true
				next = append(next, other)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
