package ui

import (
	"net/http"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// before shows what would happen if a manifest were applied.
func (s *Server) before(w http.ResponseWriter, r *http.Request) {
	const title = "Before you apply"
	var name, manifest string
	if r.Method == http.MethodPost {
		if err := r.ParseForm(); err != nil {
			s.fail(w, title, err)
			return
		}
		name, manifest = r.PostForm.Get("name"), strings.ReplaceAll(r.PostForm.Get("manifest"), "\r\n", "\n")
	}
	form := el("form", id("before"), at("method", "post"), at("action", "/before"),
		el("p", el("label", at("for", "name"), text("Name of the Application, unless the text has one ")), el("input", id("name"), at("name", "name"), at("value", name), at("autocomplete", "off"))),
		el("p", el("label", at("for", "manifest"), text("Manifest or Application: paste it here, or drop a file"))),
		el("textarea", id("manifest"), at("name", "manifest"), at("rows", "14"), at("spellcheck", "false"), at("autocomplete", "off"), verbatim(manifest)),
		el("p", el("button", at("type", "submit"), text("Show what would happen")), text(" Nothing is written: the API server is asked by a dry run.")))
	if strings.TrimSpace(manifest) == "" {
		s.show(w, title, "", form)
		return
	}
	found, err := s.source.Forecast(r.Context(), name, manifest)
	if err != nil {
		s.show(w, title, "", form, saidNode(found.Said), el("p", class("bad"), at("role", "alert"), text(application.Cut(err.Error(), longestCell))))
		return
	}
	s.show(w, title, "", form, saidNode(found.Said), each(found.Parts, func(part ForecastPart) node {
		return el("section", at("aria-label", part.Title),
			el("h2", text(part.Title)),
			el("p", class(string(part.Tone)), Cell{part.Outcome, part.Tone}.node()),
			when(part.Diff != "", el("pre", class("diff"), at("tabindex", "0"), each(strings.SplitAfter(part.Diff, "\n"), diffLine))),
			when(len(part.Lines) > 0, el("details", el("summary", text("The live object")), s.lens(part.Lines, nil))))
	}))
}

// diffLine shows a line of a unified diff.
func diffLine(line string) node {
	switch {
	case strings.HasPrefix(line, "-"):
		return el("del", text(line))
	case strings.HasPrefix(line, "+"):
		return el("ins", text(line))
	}
	return text(line)
}
