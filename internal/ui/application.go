package ui

import (
	"net/http"
	"strconv"

	"github.com/krake-observer/krake-observer/pkg/application"
)

func (s *Server) application(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	name := nameIn(query)
	number, _, _ := s.live.of(name) // before it is read, so that no change is lost
	found, err := s.source.Application(r.Context(), name)
	if err != nil {
		s.fail(w, "Application "+name.String(), err)
		return
	}
	now := s.now()
	s.show(w, "Application "+name.String(), "/application/events?"+queryOf(name).Encode()+"&since="+strconv.Itoa(number),
		found.About.node(),
		el("section",
			el("h2", text("Objects")),
			el("div", class("wide"), at("tabindex", "0"), at("role", "region"), at("aria-label", "Objects"),
				el("table",
					el("thead", el("tr", each([]string{"Object", "Health", "Reason", "Message"}, func(name string) node { return el("th", at("scope", "col"), text(name)) }))),
					el("tbody", each(found.Objects, ObjectRow.node))))),
		timelineNode(found, query, now),
		each(found.Tables, Table.node),
		el("section", id("drifts"), el("h2", text("Drifts")),
			when(len(found.Drifts) == 0, el("p", text("Nothing has drifted, as far as the status remembers."))),
			el("ol", class("records"), numbered(found.Drifts, func(i int, d Drift) node { return driftNode(i, d) }))))
}

func numbered[T any](values []T, show func(int, T) node) all {
	nodes := make(all, 0, len(values))
	for i, value := range values {
		nodes = append(nodes, show(i, value))
	}
	return nodes
}

func (o ObjectRow) node() node {
	title := node(text(o.Title))
	if o.Ref != (Ref{}) {
		title = el("a", at("href", "/object?"+o.Ref.query().Encode()), title)
	}
	return el("tr",
		el("th", at("scope", "row"), title),
		o.Health.td(), o.Reason.td(), o.Message.td())
}

func driftNode(i int, d Drift) node {
	return el("li", id(driftID(i)), at("tabindex", "-1"),
		el("p", text(application.Cut(d.Summary, longestCell))),
		el("dl", each(d.Record, func(pair [2]string) node {
			return all{el("dt", text(pair[0])), el("dd", text(application.Cut(pair[1], longestCell)))}
		})))
}
