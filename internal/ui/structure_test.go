package ui

import (
	"testing"

	"golang.org/x/net/html"

	"github.com/krake-observer/krake-observer/test/check"
)

// Screen readers and keyboards need the structure of a page.
func TestPagesHaveAStructure(t *testing.T) {
	for why, make := range map[string]func(string) (*Server, Ref){"with values": func(text string) (*Server, Ref) { return hostile(same(text)) }, "failing": failing} {
		s, ref := make("web")
		for _, visit := range visits(ref) {
			if !visit.isPart {
				_, root := read(t, s, visit)
				checkStructure(t, why+", "+visit.name, root)
			}
		}
	}
	s := newServer(&fake{})
	for _, visit := range visits(refOf("web", "Deployment", "web")) {
		if !visit.isPart {
			_, root := read(t, s, visit)
			checkStructure(t, "empty, "+visit.name, root)
		}
	}
}

func checkStructure(t *testing.T, page string, root *html.Node) {
	t.Helper()
	elements, ids := map[string]int{}, map[string]int{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		elements[n.Data]++
		if name := attributeOf(n, "id"); name != "" {
			ids[name]++
		}
		if n.Data == "html" && attributeOf(n, "lang") == "" {
			t.Errorf("%s: no language", page)
		}
	}
	check.Equal(t, page+": h1, main and title", [3]int{1, 1, 1}, [3]int{elements["h1"], elements["main"], elements["title"] - elementsIn(root, "svg", "title")})
	for name, times := range ids {
		if times != 1 {
			t.Errorf("%s: %d elements have the identity %q", page, times, name)
		}
	}
	checkLabels(t, page, root, ids)
}

// checkLabels requires that each input has a label, and that there is what labels another element.
func checkLabels(t *testing.T, page string, root *html.Node, ids map[string]int) {
	t.Helper()
	labelled := map[string]bool{}
	for n := range root.Descendants() {
		if n.Data == "label" {
			labelled[attributeOf(n, "for")] = attributeOf(n, "for") != ""
		}
	}
	for n := range root.Descendants() {
		isInput := n.Type == html.ElementNode && (n.Data == "input" || n.Data == "textarea")
		if isInput && attributeOf(n, "aria-label") == "" && !labelled[attributeOf(n, "id")] && !isIn(n, "label") {
			t.Errorf("%s: an input has no label: %v", page, n.Attr)
		}
		reference := attributeOf(n, "aria-labelledby")
		if reference != "" && ids[reference] == 0 {
			t.Errorf("%s: no element %q is there to label another one", page, reference)
		}
	}
}

func isIn(n *html.Node, name string) bool {
	for above := range n.Ancestors() {
		if above.Data == name {
			return true
		}
	}
	return false
}

func elementsIn(root *html.Node, outer, name string) int {
	count := 0
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == name && isIn(n, outer) {
			count++
		}
	}
	return count
}
