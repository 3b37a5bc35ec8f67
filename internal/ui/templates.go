package ui

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

//go:embed templates/*.html
var templateFiles embed.FS

// parse returns the templates. html/template escapes every value for its place. In addition, each value that users
// read goes through show or whole, which escape invisible characters.
func parse(now func() time.Time) *template.Template {
	functions := template.FuncMap{
		"show": show, "whole": lens.Visible, "trim": strings.TrimSpace, "plural": plural,
		"lines": func(text string) []string { return strings.SplitAfter(text, "\n") },
		"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"ago":   func(then time.Time) string { return duration.HumanDuration(max(now().Sub(then), 0)) + " ago" },
		"rowID": rowID, "driftID": driftID, "place": schema.Path.String,
		"query": func(ref Ref) template.URL { return template.URL(ref.query().Encode()) }, //nolint:gosec // Encode escapes each value
	}
	return template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html"))
}

// longestText is how much of a text is shown, in bytes.
const longestText = 2 << 10

// show returns the begin of a text.
func show(value any) string { return lens.Visible(application.Cut(fmt.Sprint(value), longestText)) }

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", count, stem)
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

// render returns the HTML of a template. It panics if the template does not fit the data, which is a mistake in
// this package.
func (s *Server) render(name string, data any) string {
	var out strings.Builder
	if err := s.templates.ExecuteTemplate(&out, name, data); err != nil {
		panic(err)
	}
	return out.String()
}

// write answers with a template.
func (s *Server) write(w http.ResponseWriter, code int, name string, data any) {
	page := s.render(name, data)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(page)) // the browser has gone
}

// page is the data of a whole page.
type page struct {
	Title, Cluster string
	// Events is the path of the stream that keeps the page up to date, empty if there is none.
	Events  string
	Content any
}

func (s *Server) show(w http.ResponseWriter, name, title, events string, content any) {
	s.write(w, http.StatusOK, name, page{title, s.title, events, content})
}

// fail writes a page about an error.
func (s *Server) fail(w http.ResponseWriter, title string, err error) {
	s.write(w, codeOf(err), "failed", page{title, s.title, "", err})
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
