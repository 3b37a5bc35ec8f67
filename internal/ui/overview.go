package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/krake-observer/krake-observer/pkg/application"
)

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func ago(then, now time.Time) string { return duration.HumanDuration(max(now.Sub(then), 0)) + " ago" }

func (s *Server) overview(w http.ResponseWriter, _ *http.Request) {
	found := s.live.since(0)
	now := s.now()
	var repairs all
	for _, repair := range found.repairs {
		repairs = append(all{repairNode(repair, now)}, repairs...)
	}
	s.show(w, "Applications", fmt.Sprintf("/events?since=%d", found.number),
		el("form", id("filter"), at("role", "search"),
			el("label", text("Filter "), el("input", at("type", "search"), at("name", "text"), at("placeholder", "name, cluster, state or message"))),
			el("label", el("input", at("type", "checkbox"), at("name", "trouble")), text(" only those that are not ready")),
			el("output", id("count"), at("aria-live", "polite")),
		),
		el("div", class("columns"),
			el("div", class("wide"), at("tabindex", "0"), at("role", "region"), at("aria-label", "All Applications"),
				el("table", id("applications"), at("role", "table"),
					el("thead", at("role", "rowgroup"), el("tr", at("role", "row"), each([]string{"Application", "Cluster", "State", "Ready", "Drifts", "24 hours", "Mode", "Message"}, func(name string) node {
						return el("th", at("scope", "col"), at("role", "columnheader"), el("button", at("type", "button"), class("sort"), text(name)))
					}))),
					el("tbody", at("role", "rowgroup"), each(found.rows, Row.node)))),
			el("section", class("ticker"), at("aria-labelledby", "repairs-title"),
				el("h2", id("repairs-title"), text("Repairs")),
				el("ol", id("repairs"), at("aria-live", "polite"), at("aria-relevant", "additions"), repairs))))
}

// rowID is unique, because no name contains a slash.
func rowID(name types.NamespacedName) string { return "row-" + name.Namespace + "/" + name.Name }

func (r Row) node() node {
	drifts := 0
	for _, count := range r.Hours {
		drifts += count
	}
	trouble := "no"
	if r.Ready.Tone != Good {
		trouble = "yes"
	}
	name := r.Namespace + "/" + r.Name
	return el("tr", id(rowID(r.NamespacedName)), at("role", "row"), at("data-trouble", trouble),
		el("th", at("scope", "row"), at("role", "rowheader"), el("a", at("href", "/application?"+queryOf(r.NamespacedName).Encode()), text(name))),
		cell(Cell{Text: r.Cluster}), cell(r.State), cell(r.Ready), cell(r.Drifts),
		el("td", at("role", "cell"), at("data-sort", fmt.Sprintf("%06d", drifts)), barsOf(r.Hours, drifts)),
		cell(Cell{Text: r.Mode}), cell(Cell{Text: r.Message}))
}

// cell is a cell of a table that the style sheet lays out as a grid, for which it has a role.
func cell(c Cell) node {
	return el("td", at("role", "cell"), when(c.Tone != "" && c.Tone != Plain, class(string(c.Tone))), c.node())
}

// barsOf returns a chart of the drifts of each hour.
func barsOf(hours [24]int, sum int) node {
	if sum == 0 {
		return nil
	}
	most := 1
	for _, count := range hours {
		most = max(most, count)
	}
	const height = 16
	var path strings.Builder
	for hour, count := range hours {
		if count > 0 {
			high := max(height*count/most, 2)
			fmt.Fprintf(&path, "M%d %dh3v%dh-3z", hour*4, height-high, high)
		}
	}
	return el("svg", class("bars"), at("viewBox", "0 0 96 16"), at("role", "img"), at("aria-label", plural(sum, "drift")+" in the last 24 hours"),
		el("path", at("d", path.String())))
}

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", count, stem)
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

func repairNode(r Repair, now time.Time) node {
	return el("li", moment(r.At, now), text(" "),
		el("a", at("href", "/application?"+queryOf(r.NamespacedName).Encode()), text(r.Namespace+"/"+r.Name)),
		text(" "+application.Cut(r.Text, longestCell)))
}
