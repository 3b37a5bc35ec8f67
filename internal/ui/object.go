package ui

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// query returns the parameters that [refIn] reads.
func (r Ref) query() url.Values {
	q := queryOf(r.Application)
	q.Set("apiVersion", r.Object.APIVersion)
	q.Set("kind", r.Object.Kind)
	q.Set("objectNamespace", r.Object.Namespace)
	q.Set("object", r.Object.Name)
	return q
}

func refIn(query url.Values) (Ref, error) {
	ref := Ref{nameIn(query), manifest.ID{
		APIVersion: query.Get("apiVersion"), Kind: query.Get("kind"), Namespace: query.Get("objectNamespace"), Name: query.Get("object"),
	}}
	if ref.Object.APIVersion == "" || ref.Object.Kind == "" || ref.Object.Name == "" || ref.Application == (types.NamespacedName{}) {
		return ref, errors.New("the object is not named: choose it on the page of its Application")
	}
	return ref, nil
}

func (s *Server) object(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	ref, err := refIn(query)
	if err != nil {
		s.fail(w, "Object", err)
		return
	}
	private := query.Get("private") == "1"
	number, _, _ := s.live.of(ref.Application) // before it is read, so that no change is lost
	found, err := s.source.Object(r.Context(), ref, private)
	if err != nil {
		s.fail(w, ref.Object.String(), err)
		return
	}
	self := ref.query()
	show := el("a", class("action"), at("href", "/object?"+self.Encode()+"&private=1"), text("Show private values of this object"))
	if private {
		show = el("a", class("action"), at("href", "/object?"+self.Encode()), text("Hide private values"))
	}
	s.show(w, found.Title, "/object/events?"+self.Encode()+"&"+url.Values{"version": {found.Version}, "since": {strconv.Itoa(number)}}.Encode(),
		el("p", text("An object of "), el("a", at("href", "/application?"+queryOf(ref.Application).Encode()), text(ref.Application.String())), text(" "),
			when(found.HasPrivate || private, show)),
		when(found.Missing, el("p", class("bad"), at("role", "alert"), text("There is no such object on the cluster."))),
		legend(found.Lines),
		el("div", class("columns"),
			el("section", at("aria-label", "The live object"),
				el("p", class("hint"), text("Arrow keys move, Enter explains a field, Space adds it to the observer schema or removes it.")),
				s.lens(found.Lines, self)),
			el("div", class("aside"),
				el("section", id("why"), at("aria-live", "polite"), el("h2", text("Why")), el("p", text("Choose a field to see why it is observed, or is not."))),
				el("section", id("schema"), at("aria-live", "polite"), el("h2", text("Observer schema")),
					el("p", text("Check or uncheck fields to see the observer schema that results. Nothing is written."))))))
}

// looks has the sign and the class of each look.
var looks = []struct {
	look        lens.Look
	sign, class string
}{
	{lens.InOrder, "✓", "ok"}, {lens.Drifting, "≠", "drifting"}, {lens.Pinned, "⚲", "pinned"}, {lens.Unobserved, "·", "unobserved"}, {lens.Private, "⊘", "private"},
}

// legend explains the signs, with how many lines have each.
func legend(lines []lens.Line) node {
	counts := map[lens.Look]int{}
	for _, line := range lines {
		if line.Path != nil {
			counts[line.Look]++
		}
	}
	return el("ul", class("legend"), at("aria-label", "Signs"), each(looks, func(l struct {
		look        lens.Look
		sign, class string
	}) node {
		return el("li", class(l.class), el("span", class("sign"), text(l.sign)), text(fmt.Sprintf(" %s: %d", l.look, counts[l.look])))
	}))
}

// blockLines is how many lines the browser lays out together. It skips blocks that are not on the screen.
const blockLines = 100

// lens shows the lines. Without a query their fields cannot be chosen.
func (s *Server) lens(lines []lens.Line, query url.Values) node {
	now := s.now()
	var blocks all
	var former blame.Culprit
	for block := range slices.Chunk(lines, blockLines) {
		var items all
		for _, line := range block {
			who := all(nil)
			if line.Culprit.Known() && line.Culprit != former { // said once for the lines that follow each other
				who = all{text(line.Culprit.Name() + " "), moment(line.Culprit.Time, now)}
			}
			if isField := line.Toggle != nil && line.Toggle.Length == 0; isField && !line.Culprit.Known() && former.Known() {
				who = all{text(line.Culprit.Name())}
			}
			if line.Look != "" {
				former = line.Culprit
			}
			items = append(items, lineNode(line, who, query != nil))
		}
		blocks = append(blocks, el("ol", class("block"), items))
	}
	return el("div", class("lens"), at("data-query", query.Encode()), blocks)
}

func lineNode(line lens.Line, who all, isLive bool) node {
	look := looks[3]
	for _, l := range looks {
		if l.look == line.Look {
			look = l
		}
	}
	sign, name := el("span", class("sign")), look.class
	if line.Look == "" {
		name = "part"
	} else {
		sign = el("span", class("sign"), at("role", "img"), at("aria-label", string(line.Look)), text(look.sign))
	}
	content := el("span", class("yaml"), text(line.Text))
	if isLive && line.Path != nil {
		content = el("button", at("type", "button"), class("yaml"), at("tabindex", "-1"), at("data-place", placeText(line.Place)), text(line.Text))
	}
	return el("li", class("line "+name),
		sign, toggleNode(line, isLive), content,
		when(line.Desired != "", el("ins", at("aria-label", "desired"), text("→ "+line.Desired))),
		when(line.Note != "", el("span", class("note"), text(line.Note))),
		when(len(who) > 0, el("span", class("who"), who)))
}

// toggleNode is a checkbox that is checked if the field is observed.
func toggleNode(line lens.Line, isLive bool) node {
	if line.Toggle == nil || !isLive {
		return el("span", class("toggle"))
	}
	label := "observe "
	if line.Toggle.Length > 0 {
		label = "observe the length of "
	}
	return el("input", class("toggle"), at("type", "checkbox"), at("tabindex", "-1"), at("autocomplete", "off"), at("aria-label", label+strings.TrimSpace(line.Text)),
		when(line.Toggle.Length > 0, at("data-length", strconv.Itoa(line.Toggle.Length))), when(line.Observed, at("checked", "")))
}

// explain answers with a part of the page.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	ref, err := refIn(query)
	if err != nil {
		s.failedPart(w, "why", "Why", err)
		return
	}
	said := "is in an element of a list that neither the manifest nor the status has, and no observer schema can name it: the length of the list decides whether it may be there"
	var place schema.Path
	if query.Get("place") != "" {
		if place, err = parsePlace(query.Get("place")); err == nil {
			said, err = s.source.Explain(r.Context(), ref, place)
		}
	}
	if err != nil {
		s.failedPart(w, "why", "Why", err)
		return
	}
	s.part(w, "why", "Why", el("p", el("code", text(place.String()))), el("p", text(application.Cut(said, longestCell))))
}

// mostToggles is more than an object of a megabyte has fields.
const mostToggles = 50_000

// draft answers with a part of the page.
func (s *Server) draft(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ref, err := refIn(r.PostForm)
	if err == nil && len(r.PostForm["toggle"]) > mostToggles {
		err = errors.New("too many fields are toggled")
	}
	var toggles []lens.Toggle
	for _, value := range r.PostForm["toggle"] {
		toggle, failure := parseToggle(value)
		err = cmp.Or(err, failure)
		toggles = append(toggles, toggle)
	}
	if err != nil {
		s.failedPart(w, "schema", "Observer schema", err)
		return
	}
	made, err := s.source.Draft(r.Context(), ref, toggles)
	if err != nil {
		s.failedPart(w, "schema", "Observer schema", err)
		return
	}
	s.part(w, "schema", "Observer schema",
		saidNode(made.Said),
		el("h3", text("Schema")), el("button", at("type", "button"), class("copy"), at("data-copy", "schema-text"), text("Copy")), el("pre", id("schema-text"), at("tabindex", "0"), text(made.Schema)),
		el("h3", text("Command")), el("button", at("type", "button"), class("copy"), at("data-copy", "schema-command"), text("Copy")), el("pre", id("schema-command"), at("tabindex", "0"), text(made.Command)))
}

// saidNode shows what admission says.
func saidNode(said []string) node {
	if len(said) == 0 {
		return nil
	}
	return el("ul", class("said"), each(said, func(line string) node { return el("li", text(line)) }))
}

// part writes a section that takes the place of the one with its identity.
func (s *Server) part(w http.ResponseWriter, identity, title string, inner ...node) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = writePage(w, el("section", append([]node{id(identity), at("aria-live", "polite"), el("h2", text(title))}, inner...)...)) // the browser has gone
}

func (s *Server) failedPart(w http.ResponseWriter, identity, title string, err error) {
	s.part(w, identity, title, el("p", class("bad"), text(application.Cut(err.Error(), longestCell))))
}
