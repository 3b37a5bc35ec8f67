package schema_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// Siblings are the live values beside a place that are not observed and not in the manifest,
// also in an element that stands elsewhere, and in an object that the live one lacks.
func TestSiblings(t *testing.T) {
	desired := complete(decode(t, `
spec:
  kind: opera
  parts:
  - {k: b, source: {file: {path: x}}, whole: 1}
  - {k: c}
  hook: {exec: [sleep]}`))
	observed := defaultOf(t, desired).Align(keyed("k"))
	live := complete(decode(t, `
spec:
  kind: play
  acts: 3
  none: null
  parts:
  - {k: z, source: {memory: {}}}
  - {k: b, whole: 2, source: {memory: {}, url: u}}
  hook: {call: {port: 80}}`))
	for _, c := range []struct {
		path string
		want []string
	}{
		{"spec.kind", []string{"spec.acts"}},
		{"spec.parts[1].source.file", []string{"spec.parts[1].source.memory", "spec.parts[1].source.url"}},
		{"spec.parts[1].k", nil},           // the manifest has whole
		{"spec.parts[0].source.file", nil}, // no desired element
		{"spec.hook.exec", []string{"spec.hook.call"}},
		{"spec.parts[1]", nil},
		{"spec.nothing.here", nil},
	} {
		var got []string
		for _, path := range observed.Siblings(desired, live, schema.MustParsePath(c.path)) {
			got = append(got, path.String())
		}
		check.Equal(t, "beside "+c.path, c.want, got)
	}
}

// ParsePath reads what Path.String, an API server and people write.
func TestParsePath(t *testing.T) {
	for text, want := range map[string]string{
		"spec.ports[0].nodePort":                      "spec.ports[0].nodePort",
		`metadata.labels["app.kubernetes.io/name"]`:   `metadata.labels["app.kubernetes.io/name"]`,
		"metadata.annotations[example.org/a].x[1][2]": `metadata.annotations["example.org/a"].x[1][2]`,
		`a["x]\"y"][1][2].b`:                          `a["x]\"y"][1][2].b`,
		`[""].a`:                                      `[""].a`,
		`a["0"].b`:                                    "a.0.b",
		"spec":                                        "spec",
		"":                                            "",
		"a..b":                                        "", "a[": "", "a[]": "", "a[-1": "", "a.[": "", "[b": "", ".a": "a",
	} {
		path, err := schema.ParsePath(text)
		if got := path.String(); got != want || (err == nil) != (want != "" || text == "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	path, err := schema.ParsePath("spec.ports[0].nodePort")
	check.Must(t, err)
	check.Equal(t, "names", []string{"spec", "ports", "nodePort"}, path.Names())
}
