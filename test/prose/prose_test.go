package main

import (
	"strings"
	"testing"

	assert "github.com/krake-observer/krake-observer/test/check"
)

func TestEachForbiddenConstructionIsFoundWhereItIsPlanted(t *testing.T) {
	long := strings.Repeat("word ", maxWords+1)
	for _, c := range []struct {
		name, path, source string
		want               []string // line: text
	}{
		{name: "a word in Markdown", path: "docs/a.md", source: "# T\n\nWhoever reads\nthis.", want: []string{"3: Whoever"}},
		{name: "two words in a cell of a table", path: "a.md", source: "| a |\n|---|\n| somebody, hardly |", want: []string{"3: somebody", "3: hardly"}},
		{name: "a point of a list", path: "a.md", source: "- it heals by itself", want: []string{"1: by itself"}},
		{name: "code is not read", path: "a.md", source: "Run `whoever`.\n\n```\nwhoever\n```\n\n    whoever\n"},
		{name: "a long sentence, over two lines", path: "a.md", source: "Short. " + long[:60] + "\n" + long[60:] + ". Short.", want: []string{"1: word word word word word word"}},
		{name: "a sentence of the greatest length", path: "a.md", source: strings.Repeat("word ", maxWords-1) + "word. Another."},
		{name: "code is one word", path: "a.md", source: strings.Repeat("word ", maxWords-1) + "`a b c d e`."},
		{name: "a comment", path: "pkg/a/a.go", source: "package a\n\n// f is for somebody.\nfunc f() {}", want: []string{"3: somebody"}},
		{name: "a doc comment's verb", path: "a.go", source: "package a\n\n// f gives it.\nfunc f() {}\n\n// g is what gives it.\nfunc g() {}", want: []string{"3: f gives"}},
		{name: "code in a comment, and directives", path: "a.go", source: "package a\n\n// f does it:\n//\n//\twhoever := 1\n//\n//nolint:whoever\nfunc f() {}"},
		{name: "a string of the product", path: "internal/a.go", source: "package a\n\nvar x = `ask somebody who knows`", want: []string{"3: somebody"}},
		{name: "a string that is no sentence", path: "a.go", source: "package a\n\nvar x, y = \"nobody\", \"a\""},
		{name: "a string of a test", path: "test/a/a.go", source: "package a\n\nvar x = `ask somebody who knows`"},
		{name: "an import and a tag", path: "a.go", source: "package a\n\ntype x struct{ A int `json:\"somebody in a tag\"` }"},
	} {
		t.Run(c.name, func(t *testing.T) {
			passages := pageOf(c.path, []byte(c.source))
			if strings.HasSuffix(c.path, ".go") {
				var err error
				passages, err = programOf(c.path, []byte(c.source))
				assert.Must(t, err)
			}
			var got []string
			found, _ := check(passages, nil)
			for _, f := range found {
				got = append(got, strings.TrimSpace(strings.Split(f.String(), ":")[1])+": "+f.text)
			}
			assert.Equal(t, "findings", c.want, got)
		})
	}
}

func TestAnExceptionIsForOneTextOfOneFileAndNeeded(t *testing.T) {
	passages := []passage{
		{file: "a.md", line: 1, kind: page, text: "the word nobody is forbidden"},
		{file: "a.md", line: 2, kind: page, text: "nobody knows"},
		{file: "b.md", line: 1, kind: page, text: "the word nobody is forbidden"},
	}
	needed := exception{File: "a.md", Text: "the word nobody", Reason: "it is about the word"}
	stale := exception{File: "a.md", Text: "hardly", Reason: "was there once"}
	found, unused := check(passages, []exception{needed, stale})
	var places []string
	for _, f := range found {
		places = append(places, f.file+" "+f.passage.text)
	}
	assert.Equal(t, "findings", []string{"a.md nobody knows", "b.md the word nobody is forbidden"}, places)
	assert.Equal(t, "unused", []exception{stale}, unused)
}
