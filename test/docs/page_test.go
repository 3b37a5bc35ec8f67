package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/kit"
)

const sample = "# A page: it's `one`\n\nSee [that](other.md#there).\n\n    make it      # as it is\n    FOO=1 go run . \\\n      --all\n\n" +
	"## Twice\n\n```console\n$ kubectl get 'a b' \"c\"\nNAME\n```\n\n```yaml fragment\na: 1\n```\n\n## Twice\n\n" +
	"| a | b |\n|---|---|\n| `x \\| y` | is `2` |\n"

func samplePage(t *testing.T, text string) *Page {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.md")
	kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	page, err := Read(path)
	kit.Must(t, err)
	page.Path = "page.md"
	return page
}

func TestRead(t *testing.T) {
	page := samplePage(t, sample)
	want := &Page{
		Path: "page.md",
		Sections: []Section{
			{},
			{Heading: "A page: it's one", Anchor: "a-page-its-one", Parts: []Part{
				{Block: &Block{Line: 5, Text: "make it      # as it is\nFOO=1 go run . \\\n  --all\n"}},
			}},
			{Heading: "Twice", Anchor: "twice", Parts: []Part{
				{Block: &Block{Line: 12, Fenced: true, Info: []string{"console"}, Text: "$ kubectl get 'a b' \"c\"\nNAME\n"}},
				{Block: &Block{Line: 17, Fenced: true, Info: []string{"yaml", "fragment"}, Text: "a: 1\n"}},
			}},
			{Heading: "Twice", Anchor: "twice-1", Parts: []Part{
				{Table: &Table{Rows: [][]Cell{{{Text: "x | y", Codes: []string{"x | y"}}, {Text: "is 2", Codes: []string{"2"}}}}}},
			}},
		},
		Links: []Link{{Line: 3, To: "other.md#there"}},
	}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	commands, err := page.Commands()
	kit.Must(t, err)
	wanted := []Command{
		{Page: "page.md", Line: 5, Words: []string{"make", "it"}},
		{Page: "page.md", Line: 6, Words: []string{"FOO=1", "go", "run", ".", "--all"}},
		{Page: "page.md", Line: 12, Words: []string{"kubectl", "get", "a b", "c"}},
	}
	if diff := cmp.Diff(wanted, commands); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An indented block without a command would not be checked.
func TestUnknownCommands(t *testing.T) {
	for text, want := range map[string]string{
		"    answer = 42\n":        "fence the block as text",
		"    make it\n    so: 1\n": "fence the block as text",
		"    make 'it\n":           "a quote is left open",
	} {
		if _, err := samplePage(t, text).Commands(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	commands, err := samplePage(t, "```text\nanswer = 42\n```\n").Commands()
	if err != nil || len(commands) > 0 {
		t.Errorf("what is fenced as text: %v, %v", commands, err)
	}
}

func TestScriptWords(t *testing.T) {
	for line, want := range map[string][]string{
		"exec a 'b c'  d":            {"exec", "a", "b c", "d"},
		"exec 'it''s' '' # as it is": {"exec", "it's", ""},
		"until 'a b' c=d#e":          {"until", "a b", "c=d#e"},
	} {
		if diff := cmp.Diff(want, scriptWords(line)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", line, diff)
		}
	}
}
