package ui

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

const script = `"><script>alert(1)</script>'&<img src=x onerror=alert(1)>` + "\n</textarea></title></svg><style>*{}</style>"

// fill sets each string of a value, and makes lists of two elements. The text may depend on the field.
func fill(value reflect.Value, field string, text func(field string) string) {
	switch value.Kind() {
	case reflect.String:
		value.SetString(text(field))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), field, text)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range value.Len() {
			fill(value.Index(i), field, text)
		}
	case reflect.Struct:
		switch at := value.Addr().Interface().(type) {
		case *time.Time:
			*at = noon.Add(-time.Hour)
			return
		case *schema.Step:
			*at = schema.Step{Field: text("Step.Field"), Index: -1}
			return
		}
		for i := range value.NumField() {
			fill(value.Field(i), value.Type().Name()+"."+value.Type().Field(i).Name, text)
		}
	default: // numbers
	}
}

func filled[T any](text func(field string) string) T {
	var value T
	fill(reflect.ValueOf(&value).Elem(), "", text)
	return value
}

// hostile returns a page all of whose strings come from an attacker, and one of its objects.
func hostile(text func(field string) string) (*Server, Ref) {
	source := &fake{
		application: filled[Application](text), object: filled[Object](text), said: text("said"), draft: filled[Draft](text),
		forecast: filled[Forecast](text),
	}
	s := newServer(source)
	s.title = text("title")
	change := filled[Change](text)
	change.Gone, change.Rows[1].Hours[3] = nil, 2
	s.live.take(change)
	return s, filled[Ref](text)
}

func same(text string) func(string) string { return func(string) string { return text } }

// read returns a page as text, and as a browser parses it.
func read(t *testing.T, s *Server, v visit) (body string, root *html.Node) {
	t.Helper()
	answered := answer(s, v.request(s))
	check.Equal(t, v.name+": type", "text/html; charset=utf-8", answered.Header().Get("Content-Type"))
	body = answered.Body.String()
	root, err := html.Parse(strings.NewReader(body))
	check.Must(t, err)
	return body, root
}

func attributeOf(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func failing(text string) (*Server, Ref) {
	s, ref := hostile(same(text))
	s.source.(*fake).err = problem(text)
	return s, ref
}

type problem string

func (p problem) Error() string { return string(p) }

func TestValuesAreText(t *testing.T) {
	for _, text := range []string{script, "../../etc/passwd", "a?b=c&d=%2f#e", "javascript:alert(1)", "' onload='alert(1)", "<!--", "]]>", "&lt;script&gt;"} {
		for _, make := range []func(string) (*Server, Ref){failing, func(text string) (*Server, Ref) { return hostile(same(text)) }} {
			s, ref := make(text)
			for _, visit := range visits(ref) {
				_, root := read(t, s, visit)
				for n := range root.Descendants() {
					checkNode(t, visit.name, text, n)
				}
			}
		}
	}
}

// checkNode requires that a node of a page is one that the page itself has made.
func checkNode(t *testing.T, page, text string, n *html.Node) {
	t.Helper()
	if n.Type == html.CommentNode {
		t.Errorf("%s: comment %q", page, n.Data)
	}
	if n.Type != html.ElementNode {
		return
	}
	switch n.Data {
	case "img", "style", "iframe", "object", "embed", "base":
		t.Errorf("%s: element %s", page, n.Data)
	case "script":
		if attributeOf(n, "src") != "/page.js" || n.FirstChild != nil {
			t.Errorf("%s: script %v", page, n.Attr)
		}
	}
	for _, a := range n.Attr {
		if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" {
			t.Errorf("%s: attribute %s=%q", page, a.Key, a.Val)
		}
		if a.Key == "href" || a.Key == "src" || a.Key == "action" {
			checkLink(t, page, text, a.Val)
		}
	}
}

// checkLink requires a link within the page that carries exactly the names.
func checkLink(t *testing.T, page, text, link string) {
	t.Helper()
	path, query, _ := strings.Cut(link, "?")
	known := []string{"/", "/page.css", "/page.js", "/before", "/application", "/object", "#main"}
	if !slices.Contains(known, path) && !strings.HasPrefix(path, "#drift-") {
		t.Errorf("%s: link to %q", page, link)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Errorf("%s: link to %q: %v", page, link, err)
	}
	for name, value := range values {
		if name != "zoom" && name != "private" && (len(value) != 1 || value[0] != text) {
			t.Errorf("%s: link to %q carries %s=%q", page, link, name, value)
		}
	}
}

// The names of a link reach the Source as they are.
func TestNamesReachTheSource(t *testing.T) {
	for _, text := range []string{script, "../../etc/passwd", "a?b=c&d=%2f#e", "+ %20", "\u202e", "\x00"} {
		s, ref := hostile(same(text))
		for _, visit := range visits(ref)[1:5] {
			s.source.(*fake).asked = nil
			read(t, s, visit)
			want := any(ref)
			if strings.HasPrefix(visit.name, "application") {
				want = ref.Application
			}
			check.Equal(t, visit.name, []any{want}, s.source.(*fake).asked)
		}
	}
}

// Control characters and those that turn the direction of a text could show another text than there is.
func TestInvisibleCharactersAreShown(t *testing.T) {
	const text = "a\u202eb\x1b[31mc\u200bd\re\u2066f\x00g\ufeffh"
	const shown = `a\u202eb\u001b[31mc\u200bd\u000de\u2066f\u0000g\ufeffh`
	s, ref := hostile(same(text))
	broken, _ := failing(text)
	for _, visit := range visits(ref) {
		for _, s := range []*Server{s, broken} {
			body, root := read(t, s, visit)
			if !strings.Contains(body, shown) {
				t.Errorf("%s: the text is not shown", visit.name)
			}
			for n := range root.Descendants() {
				if n.Type == html.TextNode && n.Parent.Data != "textarea" && strings.ContainsFunc(n.Data, isHidden) {
					t.Errorf("%s: text %q", visit.name, n.Data)
				}
				for _, a := range n.Attr { // these are shown or spoken, others are for the script
					if (a.Key == "title" || strings.HasPrefix(a.Key, "aria-")) && strings.ContainsFunc(a.Val, isHidden) {
						t.Errorf("%s: attribute %s=%q", visit.name, a.Key, a.Val)
					}
				}
			}
		}
	}
}

func isHidden(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) }

// The user gets back what was pasted, unchanged.
func TestThePastedTextStays(t *testing.T) {
	const text = "\n\n  kind: Service\n\tname: \u202e</textarea><script>\n"
	_, root := read(t, newServer(&fake{}), visit{
		name: "forecast", method: http.MethodPost, target: "/before", form: url.Values{"manifest": {strings.ReplaceAll(text, "\n", "\r\n")}},
	})
	for n := range root.Descendants() {
		if n.Data == "textarea" {
			check.Equal(t, "text", text, n.FirstChild.Data)
		}
	}
}

// A long text, as an attacker can write into a status, must not make the page unusable. The API server or
// the lens limits the others, or they are texts of the program. A diff and a schema are shown in full.
func TestLongTextsAreCut(t *testing.T) {
	const long = 256 << 10
	limited := []string{
		"ForecastPart.Diff", "Draft.Schema", "Draft.Command", "Line.Text", "Line.Desired", "Line.Note", "Line.Look", "Step.Field",
		"ID.APIVersion", "ID.Kind", "ID.Namespace", "ID.Name", "NamespacedName.Namespace", "NamespacedName.Name", "title", "Object.Title", "Object.Version", "ObjectRow.Title",
		"Culprit.Manager", "Culprit.Subresource", "Culprit.Operation", "Cell.Tone", "Row.Mode", "Bar.Kind", "Bar.Lane", "Drift.Lane", "Table.Title", "Table.Header",
		"ForecastPart.Title", "ForecastPart.Tone", "ForecastPart.Outcome", "Draft.Said", "Forecast.Said",
	}
	s, ref := hostile(func(field string) string {
		if slices.Contains(limited, field) {
			return field
		}
		return strings.Repeat(field+" ", long/(len(field)+1))
	})
	s.source.(*fake).application.Drifts[0].Record = [][2]string{{"Field", strings.Repeat("Drift.Record ", long/13)}}
	s.source.(*fake).application.Drifts[1].Record = nil
	broken, _ := failing("short")
	broken.source.(*fake).err = problem(strings.Repeat("Error ", long/6))
	for _, visit := range visits(ref) {
		for _, s := range []*Server{s, broken} {
			body, _ := read(t, s, visit)
			words := map[string]int{}
			for word := range strings.FieldsSeq(body) {
				words[word] += len(word)
			}
			for word, size := range words {
				if size > 64<<10 && !strings.ContainsAny(word, "<=") {
					t.Errorf("%s: %s is not cut: %d bytes", visit.name, word, size)
				}
			}
			if len(body) > long {
				t.Errorf("%s: %d bytes", visit.name, len(body))
			}
		}
	}
}
