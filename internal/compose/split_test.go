package compose

import (
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

func part(text, observerSchema string) Part {
	return Part{Object: Object{Text: []byte(text)}, Schema: []byte(observerSchema)}
}

func TestObjectsAreSplitInTheirOrder(t *testing.T) {
	var parts []Part
	for range 5 {
		parts = append(parts, part("12345", ""))
	}
	large := part(strings.Repeat("x", 100), "")
	for _, c := range []struct {
		name  string
		parts []Part
		most  Limits
		want  []int
	}{
		{"none", nil, Limits{2, 100, 100}, nil},
		{"by number", parts, Limits{2, 1000, 0}, []int{2, 2, 1}},
		{"by size, with the separators", parts, Limits{100, 2 * (5 + len(separator)), 0}, []int{2, 2, 1}},
		{"one byte less", parts, Limits{100, 2*(5+len(separator)) - 1, 0}, []int{1, 1, 1, 1, 1}},
		{"observer schemas", []Part{part("12345", "12345"), part("12345", ""), part("12345", "12345")}, Limits{100, 100, 2*(5+len(separator)) - 1}, []int{2, 1}},
		{"too large by itself", []Part{parts[0], large, parts[0]}, Limits{100, 20, 0}, []int{1, 1, 1}},
	} {
		var got []int
		for _, group := range Split(c.parts, c.most) {
			got = append(got, len(group))
			if manifest, observerSchema := Spec(group); len(group) > 1 && (len(manifest) > c.most.Manifest || len(observerSchema) > c.most.Schemas) {
				t.Errorf("%s: a manifest of %d bytes, and observer schemas of %d", c.name, len(manifest), len(observerSchema))
			}
		}
		check.Equal(t, c.name, c.want, got)
	}
}

func TestDocumentsAreSeparated(t *testing.T) {
	manifest, observerSchema := Spec([]Part{part("\na: b\n\n", ""), part("c: d", "e: f\n"), part("g: h\n", "i: j\n")})
	check.Equal(t, "manifest", "a: b\n---\nc: d\n---\ng: h\n", manifest)
	check.Equal(t, "observer schemas", "e: f\n---\ni: j\n", observerSchema)
}
