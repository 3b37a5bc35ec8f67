package layers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/check/typed"
)

// mutual are the packages with files that need each other, and why they do.
var mutual = map[string]string{
	"internal/cli":  "create and import are values whose methods are in several files",
	"internal/lens": "objects contain lists, and lists contain objects",
	"internal/ui":   "the server dispatches to its pages, which are methods of it",
}

// A package can be read from the bottom up: no two of its files need each other.
func TestFilesNeedEachOtherInOneDirection(t *testing.T) {
	packages := typed.Load(t, "../..", "./pkg/...", "./internal/...", "./cmd/...")
	const fewest = 20 // a wrong pattern would find nothing, too
	if len(packages) < fewest {
		t.Fatalf("%d packages: %v", len(packages), slices.Collect(maps.Keys(packages)))
	}
	for folder, pkg := range packages {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			references, err := pkg.References()
			check.Must(t, err)
			found := circles(references)
			if _, may := mutual[folder]; may {
				if len(found) == 0 {
					t.Error("no two of its files need each other any more: take it out of the list")
				}
				return
			}
			for _, circle := range found {
				t.Errorf("these files need each other:\n%s", described(circle, references))
			}
		})
	}
}

func TestCircles(t *testing.T) {
	tests := []struct {
		why        string
		references map[string]map[string][]string
		want       string
	}{
		{"nothing", nil, "[]"},
		{"a chain", references("a b", "b c", "a c"), "[]"},
		{"two", references("a b", "b a", "b c"), "[[a b]]"},
		{"two by a third", references("a b", "b c", "c a", "c d", "d e"), "[[a b c]]"},
		{"two circles", references("a b", "b a", "b c", "c d", "d c"), "[[a b] [c d]]"},
	}
	for _, test := range tests {
		check.Equal(t, test.why, test.want, fmt.Sprint(circles(test.references)))
	}
	check.Equal(t, "told as", "\ta -> b: x\n\tb -> a: x\n", described([]string{"a", "b"}, references("a b", "b a", "b c")))
}

func references(pairs ...string) map[string]map[string][]string {
	all := map[string]map[string][]string{}
	for _, pair := range pairs {
		from, to, _ := strings.Cut(pair, " ")
		if all[from] == nil {
			all[from] = map[string][]string{}
		}
		all[from][to] = []string{"x"}
	}
	return all
}

// circles returns the groups of files of which each reaches each other one, in order.
func circles(references map[string]map[string][]string) [][]string {
	reached := map[string]map[string]bool{}
	for file := range references {
		reached[file] = map[string]bool{}
		follow(file, references, reached[file])
	}
	var found [][]string
	for _, file := range slices.Sorted(maps.Keys(references)) {
		var circle []string
		for other := range reached[file] {
			if reached[other][file] {
				circle = append(circle, other)
			}
		}
		if slices.Sort(circle); len(circle) > 0 && circle[0] == file { // told once
			found = append(found, circle)
		}
	}
	return found
}

func follow(file string, references map[string]map[string][]string, reached map[string]bool) {
	for next := range references[file] {
		if !reached[next] {
			reached[next] = true
			follow(next, references, reached)
		}
	}
}

func described(circle []string, references map[string]map[string][]string) string {
	var b strings.Builder
	for _, from := range circle {
		for _, to := range circle {
			if names := references[from][to]; len(names) > 0 {
				fmt.Fprintf(&b, "\t%s -> %s: %s\n", from, to, strings.Join(slices.Sorted(slices.Values(names)), " "))
			}
		}
	}
	return b.String()
}
