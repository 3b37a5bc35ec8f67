package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/check/typed"
	"github.com/krake-observer/krake-observer/test/kit"
)

const root = "../.."

// A bug that cannot be planted, or does not compile, tests nothing. This takes seconds, and a run half an hour.
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
		folder, names, _ := strings.Cut(b.Tests, " -run ")
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		kit.Must(t, err)
		var existing []string
		for _, file := range files {
			text, err := os.ReadFile(file)
			kit.Must(t, err)
			for _, found := range function.FindAllStringSubmatch(string(text), -1) {
				existing = append(existing, found[1])
			}
		}
		for name := range strings.SplitSeq(strings.Trim(names, "^()$"), "|") {
			if !slices.ContainsFunc(existing, func(each string) bool { return strings.HasPrefix(each, name) }) {
				t.Errorf("%s: %s has no test %s", b.Name, folder, name)
			}
		}
	}
}

const original = `package one

type counter struct{ limit int }

func (c *counter) isFull(count int) bool { return count >= c.limit }

func add(a, b int) int {
	if a > b {
		a = b
	}
	return a + b
}

func One() int { return 1 }
`

// The pattern finds the place, whatever its locals are called and however it is formatted.
func TestABugSurvivesARenameOfLocals(t *testing.T) {
	b := bug{Name: "b", In: "one.(*counter).isFull", Find: "return $count >= $c.limit", Put: "return $count > $c.limit"}
	for written, want := range map[string]string{
		"(c *counter) isFull(count int) bool { return count >= c.limit }":  "return count > c.limit",
		"(of *counter) isFull(n int) bool { return n >= of.limit }":        "return n > of.limit",
		"(c *counter) isFull(n int) bool {\n\treturn n >= // why\nc.limit": "return n > c.limit",
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "one/one.go"), strings.Replace(original, "(c *counter) isFull(count int) bool { return count >= c.limit", strings.TrimSuffix(written, " }"), 1))
		if _, text, err := b.plant(dir); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: got %v and %s", written, err, text)
		}
	}
}

// An outdated bug is a mistake. It does not count as caught.
func TestBugsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "one/one.go"), original)
	for _, test := range []struct{ in, find, put, want string }{
		{"one.add", "$a > $b", "$a >= $b", ""},
		{"one.add", "if $a > $b { $*body }", "", ""},
		{"one.add", "$a > $b", "$$ && false", ""},
		{"one.add", "$a < $b", "$a >= $b", "b: one.add has the pattern 0 times, and not once"},
		{"one.add", "a", "b", "b: one.add has the pattern 4 times, and not once"},
		{"one.add", "$a > $b", "$c", "b: $c is not in the pattern"},
		{"one.add", "$a > $b", "$a > $b", "b: it changes nothing"},
		{"one.counter.isFull", "$a > $b", "", "b: there is no function one.counter.isFull"},
		{"two.add", "$a > $b", "", "b: there is no function two.add"},
	} {
		_, _, err := bug{Name: "b", In: test.in, Find: test.find, Put: test.put}.plant(dir)
		if check.Message(err) != test.want {
			t.Errorf("%s, %s: got %v, want %q", test.find, test.put, err, test.want)
		}
	}
	const whole = "{name: a, in: b, find: c, harm: d, tests: e}"
	for text, want := range map[string]string{
		"[{name: a, in: b, find: c, harm: d}]": "a: a bug has a name, and says in, find, harm and tests",
		"[" + whole + ", " + whole + "]":       "a: two bugs have this name",
	} {
		if _, err := read([]byte(text)); check.Message(err) != want {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

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
	for _, test := range []struct{ why, only, put, tests, want, err string }{
		{"the same in other words", "", "return 2 - 1", green, "SURVIVED", "a bug that survives"},
		{"another value", "", "return 2", green, "`TestSecond/a_sub_test`", ""},
		{"a crash", "", `panic("no")`, green, "`TestFirst`", ""},
		{"no Go", "", "return x", green, "undefined: x", "one that does not compile"},
		{"red without a bug", "", "return 2", "./one", "", "without any bug, ./one: `TestRed`"},
		{"no package", "", "return 2", "./two", "", "without any bug, ./two: "},
		{"an outdated bug", "", "return 1", green, "", "b: it changes nothing"},
		{"no name", "^a", "return 2", green, "", `no bug matches "^a"`},
	} {
		t.Run(test.why, func(t *testing.T) {
			bugs := []bug{{Name: "b", In: "one.One", Find: "return 1", Put: test.put, Harm: "It is not one.", Tests: test.tests}}
			results, out := filepath.Join(t.TempDir(), "bin/table.md"), new(strings.Builder)
			err := run(t.Context(), Options{Dir: dir, Only: test.only, Sample: 2, Results: results}, bugs, out)
			if got := check.Message(err); (got == "") != (test.err == "") || !strings.Contains(got, test.err) {
				t.Errorf("got the error %q, want %q", got, test.err)
			}
			written, _ := os.ReadFile(results) // absent if no bug was tried
			if string(written) != out.String() || !strings.Contains(out.String(), test.want) {
				t.Errorf("printed is\n%s\nand written\n%s\nwithout %q", out, written, test.want)
			}
		})
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	kit.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	kit.Must(t, os.WriteFile(file, []byte(text), 0o600))
}
