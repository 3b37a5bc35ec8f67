package ui

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/lens"
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
	events := url.Values{"version": {found.Version}, "since": {strconv.Itoa(number)}}
	s.show(w, "object", found.Title, "/object/events?"+self.Encode()+"&"+events.Encode(), objectContent{
		Object: found, Ref: ref, IsPrivate: private, Legend: legendOf(found.Lines), Lens: lensOf(found.Lines, self),
	})
}

type objectContent struct {
	Object

	Ref Ref
	// IsPrivate: private values are shown.
	IsPrivate bool
	Legend    []legendEntry
	Lens      lensContent
	Why       whyContent
	Schema    schemaContent
}

type legendEntry struct {
	look

	Count int
}

// legendOf explains the signs, with how many lines have each.
func legendOf(lines []lens.Line) []legendEntry {
	counts := map[lens.Look]int{}
	for _, line := range lines {
		if line.Path != nil {
			counts[line.Look]++
		}
	}
	var legend []legendEntry
	for _, l := range looks {
		legend = append(legend, legendEntry{l, counts[l.Name]})
	}
	return legend
}

// whyContent is what explain answers. The zero value asks for a choice.
type whyContent struct {
	Place   schema.Path
	Said    string
	Problem error
}

// explain answers with a part of the page.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	content := whyContent{
		Said: "is in an element of a list that neither the manifest nor the status has, and no observer schema can name it: the length of the list decides whether it may be there",
	}
	ref, err := refIn(query)
	if err == nil && query.Get("place") != "" {
		if content.Place, err = parsePlace(query.Get("place")); err == nil {
			content.Said, err = s.source.Explain(r.Context(), ref, content.Place)
		}
	}
	content.Problem = err
	s.write(w, http.StatusOK, "why", content)
}

// schemaContent is what draft answers. The zero value asks for a choice.
type schemaContent struct {
	Draft   *Draft
	Problem error
}

// draft answers with a part of the page.
func (s *Server) draft(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ref, err := refIn(r.PostForm)
	toggles, failure := togglesIn(r.PostForm)
	if err = cmp.Or(err, failure); err != nil {
		s.write(w, http.StatusOK, "schema", schemaContent{Problem: err})
		return
	}
	made, err := s.source.Draft(r.Context(), ref, toggles)
	s.write(w, http.StatusOK, "schema", schemaContent{&made, err})
}

// mostToggles is more than an object of a megabyte has fields.
const mostToggles = 50_000

func togglesIn(form url.Values) ([]lens.Toggle, error) {
	if len(form["toggle"]) > mostToggles {
		return nil, errors.New("too many fields are toggled")
	}
	var toggles []lens.Toggle
	for _, value := range form["toggle"] {
		toggle, err := parseToggle(value)
		if err != nil {
			return nil, err
		}
		toggles = append(toggles, toggle)
	}
	return toggles, nil
}
