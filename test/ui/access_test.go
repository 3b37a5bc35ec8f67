package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"

	"github.com/krake-observer/krake-observer/test/kit"
)

// audit returns what a page lacks for people who use a keyboard, a screen reader, or need contrast: WCAG 2.1 AA,
// as far as a program can tell. It counts a text only where it is drawn.
const audit = `(() => {
  const found = [];
  const light = (channel) => (channel /= 255) <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const colour = channels(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || ["SCRIPT", "NOSCRIPT"].includes(element.tagName)) continue;
    const [a, b] = [luminance(channels(getComputedStyle(element).color)), luminance(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const what = element.tagName + "." + element.className;
    if (ratio < 4.5 && !seen.has(what)) found.push("contrast of " + ratio.toFixed(2) + ": " + what + " " + walker.currentNode.data.slice(0, 40));
    seen.add(what);
  }
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push("two elements have the identity " + id);
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) found.push("heading " + heading.textContent + " skips a level");
    level = next;
  }
  for (const [name, count] of Object.entries({ main: 1, h1: 1, header: 1 })) if (document.querySelectorAll(name).length !== count) found.push("not one " + name);
  if (!document.documentElement.lang || !document.title) found.push("no language or title");
  for (const cell of document.querySelectorAll("thead th")) if (cell.scope !== "col") found.push("a header without scope");
  for (const element of document.querySelectorAll("[aria-labelledby], [for]"))
    if (!document.getElementById(element.getAttribute("aria-labelledby") ?? element.htmlFor)) found.push("a reference leads nowhere");
  for (const element of document.querySelectorAll("*"))
    if (element.scrollWidth > element.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(element).overflowX) && element.tabIndex < 0 && !element.matches("input, textarea"))
      found.push("only a pointer can scroll " + element.tagName + "." + element.className);
  return found;
})()`

// Each view is usable by keyboard and screen reader, in light and dark, wide and narrow.
func TestEachViewIsAccessible(t *testing.T) {
	needBrowser(t)
	app := busy(t)
	b := serve(t, "-n", app.Namespace).open(t)
	for _, colours := range []string{"light", "dark"} {
		for _, width := range []int64{1400, 420} {
			b.do(chromedp.EmulateViewport(width, 900), prefer(colours))
			for _, v := range views(app) {
				v.open(b)
				for _, finding := range append(eval[[]string](b, audit), nameless(b)...) {
					t.Errorf("%s, %s, %d pixels wide: %s", v.name, colours, width, finding)
				}
			}
		}
	}
}

// nameless returns what a screen reader could not name, by the browser's own tree.
func nameless(b tab) []string {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.Context, patience)
	defer stop()
	tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	kit.Must(b.t, err)
	var found []string
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		role := strings.Trim(string(node.Role.Value), `"`)
		name := ""
		if node.Name != nil {
			name = strings.Trim(string(node.Name.Value), `" `)
		}
		named := []string{"button", "link", "checkbox", "textbox", "searchbox", "image", "img", "region", "navigation", "heading", "form", "DisclosureTriangle"}
		if slices.Contains(named, role) && name == "" {
			found = append(found, fmt.Sprintf("a %s has no name", role))
		}
	}
	return found
}
