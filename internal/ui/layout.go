package ui

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// page is a whole page. Its script listens to events, the path of a stream, if there is one.
func (s *Server) page(title, events string, inner ...node) node {
	return el("html", at("lang", "en"),
		el("head",
			el("meta", at("charset", "utf-8")),
			el("meta", at("name", "viewport"), at("content", "width=device-width, initial-scale=1")),
			el("meta", at("name", "color-scheme"), at("content", "light dark")),
			el("title", text(title+" - Krake Observer")),
			el("link", at("rel", "stylesheet"), at("href", "/page.css")),
			el("script", at("type", "module"), at("src", "/page.js")),
		),
		el("body", at("data-events", events),
			el("a", class("skip"), at("href", "#main"), text("Skip to the content")),
			el("header",
				el("nav", at("aria-label", "Pages"),
					el("a", at("href", "/"), text("Applications")),
					el("a", at("href", "/before"), text("Before you apply")),
				),
				el("p", class("cluster"), text(s.title)),
			),
			el("main", append([]node{id("main"), at("tabindex", "-1"), el("h1", text(title)), el("noscript", el("p", class("bad"), text("This page needs its script to stay up to date.")))}, inner...)...),
			el("p", id("problem"), at("role", "status"), class("bad")),
		))
}

// show writes a page.
func (s *Server) show(w http.ResponseWriter, title, events string, inner ...node) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = writePage(w, s.page(title, events, inner...)) // the browser has gone
}

// fail writes a page about an error.
func (s *Server) fail(w http.ResponseWriter, title string, err error) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(codeOf(err))
	_ = writePage(w, s.page(title, "", el("p", class("bad"), at("role", "alert"), text(application.Cut(err.Error(), longestCell)))))
}

func codeOf(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest {
		return int(status.Status().Code)
	}
	return http.StatusBadGateway
}

// nameIn returns the Application that a request names.
func nameIn(query url.Values) types.NamespacedName {
	return types.NamespacedName{Namespace: query.Get("namespace"), Name: query.Get("name")}
}

func queryOf(name types.NamespacedName) url.Values {
	return url.Values{"namespace": {name.Namespace}, "name": {name.Name}}
}

// longestCell is how much of a text a cell shows, in bytes.
const longestCell = 2 << 10

// node shows a cell. The style sheet puts the sign of its tone before it.
func (c Cell) node() node { return text(application.Cut(c.Text, longestCell)) }

func (c Cell) td() node {
	if c.Text == "" {
		return el("td")
	}
	return el("td", class(string(c.Tone)), c.node())
}

// node returns the table, or nothing if it is empty.
func (t Table) node() node {
	if len(t.Rows) == 0 {
		return nil
	}
	var head node
	if t.Header != nil {
		head = el("thead", el("tr", each(t.Header, func(name string) node { return el("th", at("scope", "col"), text(name)) })))
	}
	return el("section",
		el("h2", text(t.Title)),
		el("div", class("wide"), at("tabindex", "0"), at("role", "region"), at("aria-label", t.Title),
			el("table", head, el("tbody", each(t.Rows, func(row []Cell) node {
				cells := each(row, Cell.td)
				if t.Header == nil && len(row) > 0 {
					cells[0] = el("th", at("scope", "row"), row[0].node())
				}
				return el("tr", cells)
			})))))
}

// moment shows a time, with its distance from now.
func moment(then, now time.Time) node {
	if then.IsZero() {
		return nil
	}
	return el("time", at("datetime", then.UTC().Format(time.RFC3339Nano)), text(ago(then, now)))
}
