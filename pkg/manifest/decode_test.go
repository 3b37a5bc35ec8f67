package manifest_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

type fields = map[string]any

func TestDecodeDocuments(t *testing.T) {
	a, b := fields{"a": int64(1)}, fields{"b": int64(2)}
	tests := []struct {
		why, text string
		want      []any
	}{
		{"nothing gives nothing", "", nil},
		{"documents are read in their order", "a: 1\n---\nb: 2\n", []any{a, b}},
		{"the text may begin with a line ---, or not", "---\na: 1\n---\nb: 2\n", []any{a, b}},
		{"empty documents are left out", "---\n---\na: 1\n---\n# nothing\n---\nnull\n---\nb: 2\n---\n", []any{a, b}},
		{"a comment may follow ---", "a: 1\n--- # the second\nb: 2\n", []any{a, b}},
		{"a list is as good as documents", "- a: 1\n- b: 2\n", []any{a, b}},
		{"so is a list of JSON", `[{"a": 1}, {"b": 2}]`, []any{a, b}},
		{"documents of YAML and JSON may be mixed", "{\"a\": 1}\n---\nb: 2\n", []any{a, b}},
		{"JSON may be indented by tabs", "{\n\t\"a\": 1\n}\n", []any{a}},
		{"JSON has escapes that YAML lacks", "---\n" + `{"a": "\/ \ud83d\ude00"}`, []any{fields{"a": "/ 😀"}}},
		{"lines may end as on Windows", "a: 1\r\n---\r\nb: 2\r\n", []any{a, b}},
		{"a line --- within a block is indented, and no separator", "a: |\n  ---\n  x\n", []any{fields{"a": "---\nx\n"}}},
		{"a byte order mark is no part of the first key", "\ufeffa: 1\n", []any{a}},
		{"what is no object is for the caller to see", "text\n---\n- 1\n- null\n", []any{"text", int64(1), nil}},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			got, err := manifest.Decode([]byte(test.text))
			check.Must(t, err)
			check.Equal(t, "documents", test.want, got)
		})
	}
}

func TestDecodeScalars(t *testing.T) {
	tests := []struct {
		why, text string
		want      any
	}{
		{"the largest integer keeps all its digits", "9223372036854775807", int64(math.MaxInt64)},
		{"so does the smallest", "-9223372036854775808", int64(math.MinInt64)},
		{"a float may be larger", "9223372036854775808.0", float64(1 << 63)},
		{"digits within quotes are a text", "'9223372036854775808'", "9223372036854775808"},
		{"a fraction is a float", "0.5", 0.5},
		{"yes is true in YAML 1.1", "yes", true},
		{"On is true", "On", true},
		{"n is false", "n", false},
		{"a quoted yes is a text", "'yes'", "yes"},
		{"a leading zero is octal: a file mode", "0644", int64(0o644)},
		{"an explicit text is one", "!!str 1", "1"},
		{"a date stays as it was written", "2001-01-02", "2001-01-02"},
		{"a tilde is null", "~", nil},
		{"a quoted << is a key like any other", `{"<<": {b: x}}`, fields{"<<": fields{"b": "x"}}},
		{"keys that are no text become one", "{1: b, 1.5: c, yes: d}", fields{"1": "b", "1.5": "c", "true": "d"}},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			check.Equal(t, "resource", fields{"a": test.want}, object(t, "a: "+test.text))
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct{ why, text, want string }{
		{"an anchor", "a: 1\nb: &big [1]\n", "document 1: line 2: anchors and aliases are not supported: write the value out"},
		{"an alias, even of nothing", "a: *b\n", "document 1: parse YAML: line 1: anchors and aliases are not supported: quote a text that begins with *"},
		{"a merge key", "b: 2\na:\n  <<: {c: 1}\n", "document 1: line 3: merge keys are not supported: write the fields out"},
		{"a merge key by its tag", "!<tag:yaml.org,2002:merge> <<: {c: 1}\n", "document 1: line 1: merge keys are not supported: write the fields out"},
		{"the number of the document is told", "---\na: 1\n---\nc: 3\nb: &x 1\n", "document 2: line 2: anchors and aliases are not supported: write the value out"},
		{"a key that is there twice", "a: 1\na: 2\n", "document 1: parse YAML: yaml: unmarshal errors:\n  line 2: key \"a\" already set in map"},
		{"a key of JSON that is there twice", `{"a": {"b": 1, "b": 2}}`, `document 1: parse JSON: duplicate field "a.b"`},
		{"keys that become the same text: one would get lost", "1: a\n'1': b\n", `document 1: parse YAML: line 2: two keys of an object are the same text, as are 1 and "1"`},
		{"a second document that no line --- begins", "a: 1\n...\nb: 2\n", `document 1: line 2: a further document must begin with a line "---"`},
		{"a second document after a line break of YAML that is none of the splitter", "a: 1\r---\rb: 2\r", `document 1: line 2: a further document must begin with a line "---"`},
		{"a document on the line --- itself", "a: 1\n--- b: 2\n", `document 1: line 2: a line that begins with "---" may hold nothing more than a comment`},
		{"an integer that would lose digits", "a: 9223372036854775808\n", "document 1: line 1: an integer has more digits than 64 bits hold, and would lose some: quote it if it is a text"},
		{"a negative one", "a: -9223372036854775809\n", "document 1: line 1: an integer has more digits than 64 bits hold, and would lose some: quote it if it is a text"},
		{"a hexadecimal one", "a: 0xffffffffffffffff\n", "document 1: line 1: an integer has more digits than 64 bits hold, and would lose some: quote it if it is a text"},
		{"one with underscores", "a: 9__223_372_036_854_775_808\n", "document 1: line 1: an integer has more digits than 64 bits hold, and would lose some: quote it if it is a text"},
		{"one as a key", "9223372036854775808: a\n", "document 1: line 1: an integer has more digits than 64 bits hold, and would lose some: quote it if it is a text"},
		{"one in JSON", `{"a": [9223372036854775808]}`, "document 1: line 1: an integer has more digits than 64 bits hold, and would lose some: quote it if it is a text"},
		{"a number that JSON does not have", "a: .inf\n", "document 1: parse YAML: line 1: json: unsupported value: +Inf"},
		{"NUL", "a: b\x00\n", "document 1: parse YAML: line 1: control characters are not allowed: write them as escapes in double quotes; if the file is in UTF-16, as PowerShell writes it with >, save it as UTF-8"},
		{"invalid UTF-8", "a: \xff\n", "document 1: parse YAML: line 1: the text is not UTF-8: save the file as UTF-8"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			got, err := manifest.Decode([]byte(test.text))
			check.Equal(t, "error", test.want, check.Message(err))
			check.Equal(t, "result beside the error", nil, got)
		})
	}
}

// Each refusal names the line of the mistake, even if the parser does not.
func TestRefusalsNameTheLine(t *testing.T) {
	tests := []struct{ why, text, want string }{
		{"a schedule that begins with a star", "kind: CronJob\nspec:\n  schedule: */5 * * * *\n", "line 3: anchors"},
		{"a host that begins with a star", "a: 1\nhosts:\n- web.example.org\n- *.example.org\n", "line 4: anchors"},
		{"an alias that nothing names, after a text that looks like it", "a: 'x *none'\n# *none\nb:\n  c: [1,\n    *none, 2]\nd: e\n", "line 5: anchors"},
		{"the first of two", "a: |\n  *b\nc: *b\nd: *b\n", "line 3: anchors"},
		{"a control character", "a: b\nc: d\x1b\n", "line 2: control characters"},
		{"bytes of another encoding", "a: b\n# caf\xe9\nc: d\n", "line 2: the text is not UTF-8"},
		{"UTF-16 without a byte order mark", "a\x00:\x00 \x001\x00\n\x00", "line 1: control characters"},
		{"a key that is a list", "a: 1\nb:\n  ? [x]\n  : 1\n", "line 3: a key is neither"},
		{"a key that is null", "a:\n  null: b\n", "line 2: a key is neither"},
		{"keys of one text", "a: {b: 1}\nc:\n  d: 1\n  1: e\n  f: 1\n  '1': g\n", "line 6: two keys"},
		{"keys that mean the same in YAML 1.1", "a: 1\nyes: 2\nb: 3\non: 4\n", "line 4: key true"},
		{"a value that is not what its tag says", "a: 1\nb: !!int two\n", "line 2: a value is not"},
		{"a number that JSON does not have", "a: 1\nb: [2, .nan]\n", "line 2: json: unsupported value"},
		{"a document after ...", "a: 1\nb: 2\n...\nc: 3\n", "line 3: a further document"},
		{"a long number of JSON", "{\n \"a\": 1,\n \"b\": 9223372036854775808\n}\n", "line 3: an integer"},
		{"a separator with a text, counted in its document", "a: 1\n---\nb: 1\nc: 1\n--- d\n", "document 2: line 3: a line that begins"},
		{"a mistake in the first line", "a: b: c\nd: e\n", "yaml: line 1: mapping values"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			_, err := manifest.Decode([]byte(test.text))
			check.Fails(t, "decoding", err, test.want)
		})
	}
}

// The agent decodes the text of a spec again. It reports mistakes in places that more people
// can read than the spec.
func TestDecodeErrorsTellNoValues(t *testing.T) {
	for _, text := range []string{
		"password: *hunter2\n",
		"password: &hunter2\n",
		"password: !!int hunter2\n",
		"password: !!binary hunter2!\n",
		"password: !hunter2! x\n",
		"? {password: hunter2}\n: x\n",
		"null: hunter2\n",
		"18446744073709551615: hunter2\n",
		"--- {password: hunter2}\n",
		"---hunter2\n",
		"%hunter2\n---\na: 1\n",
		"password: [hunter2\n",
		"password: 'hunter2\n",
		"password: hunter2: x\n",
		"password: @hunter2\n",
		"password: hunter2\npassword: hunter2\n",
		`{"password": "hunter2", "password": "hunter2"}`,
		"1: hunter2\n'1': hunter2\n",
	} {
		_, err := manifest.Decode([]byte(text))
		check.Equal(t, text+": it is refused", true, err != nil)
		check.Equal(t, check.Message(err)+": it repeats the value", false, strings.Contains(check.Message(err), "hunter2"))
	}
}

func TestDecodeDepth(t *testing.T) {
	nested := func(before, within, after string, depth int) string {
		return strings.Repeat(before, depth) + within + strings.Repeat(after, depth)
	}
	forms := map[string]func(depth int) string{
		"objects":            func(depth int) string { return nested("{a: ", "1", "}", depth) },
		"lists":              func(depth int) string { return nested("- ", "1", "", depth) },
		"objects of JSON":    func(depth int) string { return nested(`{"a":`, "1", "}", depth) },
		"an empty innermost": func(depth int) string { return nested("{a: ", "{}", "}", depth-1) },
		"empty, in JSON":     func(depth int) string { return nested("[", "[]", "]", depth-1) },
	}
	for name, form := range forms {
		_, err := manifest.Decode([]byte(form(manifest.MaxDepth)))
		check.Fails(t, name, err, "")
		for _, depth := range []int{manifest.MaxDepth + 1, manifest.MaxDepth + 2, 9_000, 100_000} {
			_, err := manifest.Decode([]byte(form(depth)))
			check.Equal(t, name+", too deep: it is refused", true, err != nil)
		}
	}
}

// Decoders that expand first would need 600 MB here: 3000 times 200 KB.
func TestDecodeRefusesAliasesBeforeExpanding(t *testing.T) {
	text := "big: &big " + strings.Repeat("x", 200<<10) + "\nall:\n" + strings.Repeat("- *big\n", 3000)
	started := time.Now()
	_, err := manifest.Decode([]byte(text))
	check.Equal(t, "error", "document 1: line 1: anchors and aliases are not supported: write the value out", check.Message(err))
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

// No line is lost, however long it is, and wherever it ends.
func TestDecodeReadsToTheEnd(t *testing.T) {
	for _, length := range []int{64, 4096, 8192, 1 << 16, manifest.MaxBytes - 1} {
		for _, off := range []int{-1, 0, 1} {
			for _, before := range []string{"", "b: 1\n---\n"} {
				text := before + `{"a": "` + strings.Repeat("x", length+off-len(before)-len(`{"a": ""}`)) + `"}`
				want := 1 + strings.Count(before, "---")
				if got, err := manifest.Decode([]byte(text)); err != nil || len(got) != want {
					t.Errorf("a text of %d bytes gives %d resources, want %d: %v", len(text), len(got), want, err)
				}
				last := before + `{"a": "` + strings.Repeat("x", length+off-len(`{"a": ""}`)) + `"}`
				if len(last) > manifest.MaxBytes {
					continue
				}
				if got, err := manifest.Decode([]byte(last)); err != nil || len(got) != want {
					t.Errorf("a last line of %d bytes gives %d resources, want %d: %v", length+off, len(got), want, err)
				}
			}
		}
	}
}

// For each limit, the largest accepted text and the smallest refused one.
func TestDecodeLimits(t *testing.T) {
	tests := []struct {
		why, text string
		want      string
	}{
		{"as many bytes as possible", "a: " + strings.Repeat("x", manifest.MaxBytes-3), ""},
		{"one byte more", "a: " + strings.Repeat("x", manifest.MaxBytes-2),
			"the text has 4194305 bytes; the maximum is 4194304: split it"},
		{"as many documents as possible", strings.Repeat("---\na: 1\n", manifest.MaxResources), ""},
		{"one document more", strings.Repeat("---\na: 1\n", manifest.MaxResources+1),
			"document 301: more than 300 resources are not possible: split the text"},
		{"as many resources in a list as possible", strings.Repeat("- a: 1\n", manifest.MaxResources), ""},
		{"one resource more", strings.Repeat("- a: 1\n", manifest.MaxResources+1),
			"document 1: more than 300 resources are not possible: split the text"},
		{"documents and lists count together", "a: 1\n---\n" + strings.Repeat("- a: 1\n", manifest.MaxResources),
			"document 2: more than 300 resources are not possible: split the text"},
		{"documents of nothing but comments do not count, and cost nothing", strings.Repeat("---\n# a\n\n", 20_000), ""},
		{"documents without a resource do, because they cost", strings.Repeat("---\nnull\n", 20_000),
			"document 301: more than 300 resources are not possible: split the text"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			_, err := manifest.Decode([]byte(test.text))
			check.Equal(t, "error", test.want, check.Message(err))
		})
	}
}
