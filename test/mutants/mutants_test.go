package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/typed"
)

const root = "../.."

// A bug that cannot be planted, or does not compile, tests nothing. This check takes seconds, and a run half an hour.
func TestEveryBugAppliesAndCompiles(t *testing.T) {
	bugs, err := read(list)
	kit.Must(t, err)
	var folders []string
	for _, b := range bugs {
		folders = append(folders, "./"+b.folder())
	}
	packages := typed.Load(t, root, folders...)
	for _, b := range bugs {
		path, text, err := b.plant(root)
		if err == nil {
			err = packages[b.folder()].Check(filepath.Base(path), text)
		}
		if err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
}

// If a test is renamed or goes, -run matches nothing, and the bugs that it catches would survive.
func TestEveryTestOfABugExists(t *testing.T) {
	bugs, err := read(list)
	kit.Must(t, err)
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, b := range bugs {
		_, arguments := split(b.Tests)
		if len(arguments) < 3 || arguments[1] != "-run" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, arguments[0], "*_test.go"))
		kit.Must(t, err)
		var names []string
		for _, file := range files {
			text, err := os.ReadFile(file)
			kit.Must(t, err)
			for _, found := range function.FindAllStringSubmatch(string(text), -1) {
				names = append(names, found[1])
			}
		}
		for each := range strings.SplitSeq(strings.NewReplacer("(", "", ")", "", "^", "", "$", "").Replace(arguments[2]), "|") {
			if !strings.Contains(" "+strings.Join(names, " "), " "+each) {
				t.Errorf("%s: %s has no test %s", b.Name, arguments[0], each)
			}
		}
	}
}

const original = `package one

type counter struct{ limit int }

func (c *counter) isFull(count int) bool {
	return count >= c.limit
}

func add(a, b int) int {
	if a > b {
		a = b
	}
	return a + b
}

func One() int { return 1 }
`

// The pattern finds the place whatever its locals are called and however it is formatted.
func TestABugSurvivesARenameOfLocals(t *testing.T) {
	b := bug{Name: "b", In: "one.(*counter).isFull", Find: "return $count >= $c.limit", Put: "return $count > $c.limit"}
	for why, rename := range map[string]*strings.Replacer{
		"as it is":        strings.NewReplacer(),
		"other names":     strings.NewReplacer("c *counter", "of *counter", "c.limit", "of.limit", "count >", "n >", "(count int", "(n int"),
		"another layout":  strings.NewReplacer("count >= c.limit", "count >=\n\t\tc.limit"),
		"another comment": strings.NewReplacer("\treturn count", "\t// It is full.\n\treturn count"),
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "one/one.go"), rename.Replace(original))
		_, text, err := b.plant(dir)
		kit.Must(t, err)
		want := strings.Replace(rename.Replace(strings.ReplaceAll(original, "\n\t\tc.limit", " c.limit")), ">=", ">", 1)
		if diff := cmp.Diff(strings.Join(strings.Fields(want), " "), strings.Join(strings.Fields(text), " ")); diff != "" {
			t.Errorf("%s: -want +got\n%s", why, diff)
		}
	}
}

// An outdated bug is a mistake, and no bug that is caught.
func TestBugsThatAreRefused(t *testing.T) {
	tests := []struct {
		bug  bug
		want string
	}{
		{bug{In: "one.add", Find: "$a > $b", Put: "$a >= $b"}, ""},
		{bug{In: "one.add", Find: "if $a > $b { $*body }", Put: ""}, ""},
		{bug{In: "one.add", Find: "$a > $b", Put: "$$ && false"}, ""},
		{bug{In: "one.add", Find: "$a < $b", Put: "$a >= $b"}, "b: one.add has the pattern 0 times, and not once"},
		{bug{In: "one.add", Find: "a", Put: "b"}, "b: one.add has the pattern 4 times, and not once"},
		{bug{In: "one.add", Find: "$a > $b", Put: "$c"}, "b: $c is not in the pattern"},
		{bug{In: "one.add", Find: "$a > $b", Put: "$a > $b"}, "b: it changes nothing"},
		{bug{In: "one.counter.isFull", Find: "$a > $b"}, "b: there is no function one.counter.isFull"},
		{bug{In: "two.add", Find: "$a > $b"}, "b: there is no function two.add"},
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "one/one.go"), original)
	for _, test := range tests {
		test.bug.Name = "b"
		if _, _, err := test.bug.plant(dir); check.Message(err) != test.want {
			t.Errorf("%s, %s: got %v, want %q", test.bug.Find, test.bug.Put, err, test.want)
		}
	}
	for text, want := range map[string]string{
		"[{name: a, in: b, find: c, harm: d}]":    "a: a bug has a name, and says in, find, harm and tests",
		"[" + full + ", " + full + "]":            "a: two bugs have this name",
		"[{name: a, in: b, find: c, old: thing}]": `read the list: error unmarshaling JSON: while decoding JSON: json: unknown field "old"`,
	} {
		if _, err := read([]byte(text)); check.Message(err) != want {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

const full = "{name: a, in: b, find: c, harm: d, tests: e}"

// The run reads the output of go test for a module with one function.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module example.org/one\n\ngo 1.26\n")
	put(t, filepath.Join(dir, "one/one.go"), original)
	put(t, filepath.Join(dir, "one/one_test.go"), `package one

import "testing"

func TestFirst(t *testing.T) { _, _, _ = One(), add(1, 1), (&counter{}).isFull(1) }

func TestSecond(t *testing.T) {
	t.Run("a sub test", func(t *testing.T) {
		if One() != 1 {
			t.Error("it is not one")
		}
	})
}

func TestRed(t *testing.T) { t.Error("it is red") }
`)
	const green = "./one -run ^(TestFirst|TestSecond)$"
	tests := []struct{ why, put, tests, want, err string }{
		{"the same in other words", "return 2 - 1", green, "SURVIVED", "a bug that survives"},
		{"another value", "return 2", green, "`TestSecond/a_sub_test`", ""},
		{"a crash", `panic("no")`, green, "`TestFirst`", ""},
		{"no Go", "return x", green, "undefined: x", "one that does not compile"},
		{"red without a bug", "return 2", "./one", "", "without any bug, go test ./one fails: `TestRed`"},
		{"a package that does not exist", "return 2", "./two", "", "without any bug, go test ./two fails"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			bugs := []bug{{Name: "b", In: "one.One", Find: "return 1", Put: test.put, Harm: "It is not one.", Tests: test.tests}}
			results, out := filepath.Join(t.TempDir(), "table.md"), new(strings.Builder)
			err := run(t.Context(), Options{Dir: dir, Results: results}, bugs, out)
			if got := check.Message(err); got != test.err && (test.err == "" || !strings.Contains(got, test.err)) {
				t.Errorf("got the error %q, want %q", got, test.err)
			}
			written, err := os.ReadFile(results)
			kit.Must(t, err)
			if string(written) != out.String() || !strings.Contains(out.String(), test.want) {
				t.Errorf("printed is\n%s\nand written\n%s\nwithout %q", out, written, test.want)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{Only: "keys|align"}, ""},
		{Options{Only: "("}, "--only: error parsing regexp: missing closing ): `(`"},
		{Options{Sample: -1}, "--sample: -1 is less than 0"},
	} {
		if got := check.Message(test.options.Validate()); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.options, got, test.want)
		}
	}
	if _, err := choose([]bug{{Name: "a"}}, Options{Only: "^b$"}); check.Message(err) != `no bug matches "^b$"` {
		t.Errorf("got %v", err)
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	kit.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	kit.Must(t, os.WriteFile(file, []byte(text), 0o600))
}
