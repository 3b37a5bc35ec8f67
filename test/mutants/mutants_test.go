package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

const root = "../.."

// An outdated list would try nothing, and report success.
func TestTheListsFitTheCode(t *testing.T) {
	for name, list := range map[string][]byte{"mutants.yaml": list, "faults.yaml": faults} {
		mutants, err := read(list)
		if err == nil {
			err = validate(root, mutants)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryFileOfTheEngineHasAMutant(t *testing.T) {
	mutants, err := read(list)
	kit.Must(t, err)
	has := map[string]bool{}
	for _, m := range mutants {
		has[m.File] = true
	}
	for _, folder := range []string{"pkg/schema", "pkg/manifest", "pkg/apitypes"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files in %s, error %v", len(files), folder, err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			if name != "doc.go" && !strings.HasSuffix(name, "_test.go") && !has[folder+"/"+name] {
				t.Errorf("%s/%s has none", folder, name)
			}
		}
	}
}

func TestListsThatAreRefused(t *testing.T) {
	tests := []struct{ why, list, want string }{
		{"an old text that is gone", "[{name: a, file: a.go, old: gone, new: x, why: w}]", "a: the old text is not in a.go"},
		{"an old text that is there twice", "[{name: a, file: a.go, old: twice, new: x, why: w}]", "a: the old text is in a.go more than once"},
		{"also where it overlaps itself", "[{name: a, file: a.go, old: abcab, new: x, why: w}]", "a: the old text is in a.go more than once"},
		{"every mistake is told", "[{name: a, file: a.go, old: gone, why: w}, {name: b, file: a.go, old: twice, why: w}]",
			"a: the old text is not in a.go\nb: the old text is in a.go more than once"},
		{"a file that is gone", "[{name: a, file: b.go, old: once, new: x, why: w}]", "a: open b.go: no such file or directory"},
		{"a change that changes nothing", "[{name: a, file: a.go, old: once, new: once, why: w}]", "a: old and new are the same"},
		{"a mutant without a reason", "[{name: a, file: a.go, old: once}]", "a: a mutant has a name, a file, an old text and a why"},
		{"two of one name", "[{name: a, file: a.go, old: once, why: w}, {name: a, file: a.go, old: once, why: w}]", "a: there are two of this name"},
		{"a name that selects none", "[{name: b, file: a.go, old: once, why: w}]", `no mutant matches "^a$"`},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			t.Chdir(t.TempDir())
			put(t, "a.go", "once, twice, twice, abcabcab")
			err := run(t.Context(), Options{Only: "^a$"}, []byte(test.list), green, io.Discard)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func green(context.Context, string, string) (verdict, error) { return verdict{}, nil }

const two = `
- {name: first, file: a/a.go, old: one, new: two, why: It is two.}
- {name: second, file: b/b.go, old: one, new: three, why: "It is a|b."}
`

func TestRun(t *testing.T) {
	tests := []struct {
		why    string
		tester func(overlay, pkg string) verdict
		want   string // the report
		ok     bool
	}{
		{"all are caught, each by the first package that does",
			func(_, pkg string) verdict { return verdict{failed: "TestOf" + strings.TrimSuffix(pkg, " -short")} },
			"first: caught by TestOf./a (make test)\nsecond: caught by TestOf./b (make test)\n2 mutants: 2 caught (2 of them by make test), 0 survived, 0 do not compile\n", true},
		{"what make test lets through, make verify may catch",
			func(_, pkg string) verdict {
				if pkg == engine { // with all tests, and not with -short
					return verdict{failed: "TestLaws/x"}
				}
				return verdict{}
			},
			"first: caught by TestLaws/x (make verify)\nsecond: caught by TestLaws/x (make verify)\n2 mutants: 2 caught (0 of them by make test), 0 survived, 0 do not compile\n", true},
		{"one that no test finds is a failure",
			func(overlay, _ string) verdict {
				if strings.Contains(overlay, "three") {
					return verdict{}
				}
				return verdict{failed: "TestA"}
			},
			"first: caught by TestA (make test)\nsecond: SURVIVED\n2 mutants: 1 caught (1 of them by make test), 1 survived, 0 do not compile\n", false},
		{"so is one that does not compile",
			func(_, _ string) verdict { return verdict{broken: "syntax error"} },
			"first: DOES NOT COMPILE\nsyntax error\nsecond: DOES NOT COMPILE\nsyntax error\n2 mutants: 0 caught (0 of them by make test), 0 survived, 2 do not compile\n", false},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			dir := twoFiles(t)
			fake := func(_ context.Context, overlay, pkg string) (verdict, error) {
				if overlay == "" {
					return verdict{}, nil
				}
				return test.tester(mutated(t, overlay), pkg), nil
			}
			var out strings.Builder
			err := run(t.Context(), Options{Dir: dir}, []byte(two), fake, &out)
			if ok := err == nil; ok != test.ok {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(test.want, narrow(out.String())); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// twoFiles makes the files of the list "two".
func twoFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a/a.go"), "one")
	put(t, filepath.Join(dir, "b/b.go"), "one")
	return dir
}

// mutated returns the text of the changed file beside an overlay.
func mutated(t *testing.T, overlay string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(overlay), "*.go"))
	if err != nil || len(files) != 1 {
		t.Fatalf("changed files %v, error %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	kit.Must(t, err)
	return string(text)
}

// narrow returns the report without the padding of its columns.
func narrow(report string) string {
	var lines []string
	for line := range strings.Lines(report) {
		if name, rest, found := strings.Cut(line, "  "); found {
			line = name + ": " + strings.TrimLeft(rest, " ")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// If a test fails without a mutant, every mutant would seem caught.
func TestRedBeforeAnyMutant(t *testing.T) {
	red := func(context.Context, string, string) (verdict, error) {
		return verdict{failed: "TestA", output: "seed 1"}, nil
	}
	err := run(t.Context(), Options{Dir: twoFiles(t)}, []byte(two), red, io.Discard)
	if want := "without any mutant, ./a: caught by TestA\nseed 1"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTestsThatCannotBeRun(t *testing.T) {
	gone := errors.New("go: not found")
	err := run(t.Context(), Options{Dir: twoFiles(t)}, []byte(two), func(_ context.Context, overlay, _ string) (verdict, error) {
		if overlay == "" {
			return verdict{}, nil
		}
		return verdict{}, gone
	}, io.Discard)
	if !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
}

func TestMarkdown(t *testing.T) {
	dir := twoFiles(t)
	put(t, filepath.Join(dir, (&Options{}).document()), "old")
	fake := func(_ context.Context, overlay, pkg string) (verdict, error) {
		if overlay != "" && pkg == "./a" {
			return verdict{failed: "TestA/b"}, nil
		}
		return verdict{}, nil
	}
	if err := run(t.Context(), Options{Dir: dir, Markdown: true}, []byte(two), fake, io.Discard); err == nil {
		t.Error("a mutant survived, and all is well")
	}
	text, err := os.ReadFile(filepath.Join(dir, (&Options{}).document()))
	kit.Must(t, err)
	want := (&Options{}).head() + `
## a/a.go

| bug | what a user would suffer | caught by |
|---|---|---|
| first | It is two. | ` + "`TestA/b` (make verify)" + ` |

## b/b.go

| bug | what a user would suffer | caught by |
|---|---|---|
| second | It is a\|b. | **SURVIVED** |
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestOptions(t *testing.T) {
	tests := []struct {
		options Options
		want    string
	}{
		{Options{Only: "keys|align"}, ""},
		{Options{Only: "("}, "--only: error parsing regexp: missing closing ): `(`"},
		{Options{Only: "a", Markdown: true}, "--markdown writes the results of all mutants: leave --list, --only and --sample out"},
		{Options{List: true, Markdown: true}, "--markdown writes the results of all mutants: leave --list, --only and --sample out"},
	}
	for _, test := range tests {
		if got := check.Message(test.options.Validate()); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.options, got, test.want)
		}
	}
}

func TestListOnly(t *testing.T) {
	var out strings.Builder
	never := func(context.Context, string, string) (verdict, error) { return verdict{}, errors.New("a test was run") }
	kit.Must(t, run(t.Context(), Options{Dir: twoFiles(t), List: true, Only: "sec"}, []byte(two), never, &out))
	if got, want := strings.Join(strings.Fields(out.String()), " "), "second b/b.go It is a|b."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The first violation in the output of test/faults is reported, and what the failed test printed, with the
// seeds of the tests around it.
func TestInvariant(t *testing.T) {
	events := `{"Action": "run", "Test": "TestA41"}
{"Action": "output", "Test": "TestA41", "Output": "seed 1\n"}
{"Action": "output", "Test": "TestB", "Output": "another\n"}
{"Action": "output", "Test": "TestA41/x", "Output": "    tale_test.go:1: crash points, of demo/app-1:\n"}
{"Action": "output", "Test": "TestA41/x", "Output": "        I2: it is left over\n"}
{"Action": "output", "Test": "TestA41/x", "Output": "        I1: it is not there\n"}
{"Action": "fail", "Test": "TestA41/x"}
{"Action": "fail"}
`
	got, err := judge(strings.NewReader(events))
	printed := "seed 1\n    tale_test.go:1: crash points, of demo/app-1:\n        I2: it is left over\n        I1: it is not there\n"
	if want := (verdict{failed: "TestA41/x", invariant: "I2", output: printed}); err != nil || got != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	if text := (outcome{verdict: got}).String(); text != "caught by TestA41/x, I2" {
		t.Errorf("told is %q", text)
	}
}

func TestSplit(t *testing.T) {
	variables, arguments := split("A=1 B=x=y ./a -run=^TestA$ C=2")
	if got, want := strings.Join(variables, " "), "A=1 B=x=y"; got != want {
		t.Errorf("variables %q, want %q", got, want)
	}
	if got, want := strings.Join(arguments, " "), "./a -run=^TestA$ C=2"; got != want {
		t.Errorf("arguments %q, want %q", got, want)
	}
}

// The test reads the output of go test for a module with one function.
func TestGoTest(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module example.org/one\n\ngo 1.26\n")
	put(t, filepath.Join(dir, "one.go"), "package one\n\nfunc One() int { return 1 }\n")
	put(t, filepath.Join(dir, "one_test.go"), `package one

import "testing"

func TestFirst(t *testing.T) { _ = One() }

func TestSecond(t *testing.T) {
	t.Run("a sub test", func(t *testing.T) {
		if One() != 1 {
			t.Error("it is not one")
		}
	})
}

func FuzzOne(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) {
		if One() == 3 {
			t.Error("it is three")
		}
	})
}
`)
	tests := []struct {
		why, body string
		want      verdict
	}{
		{"the same in other words", "return 2 - 1", verdict{}},
		{"another value", "return 2", verdict{failed: "TestSecond/a_sub_test", tier: "make test"}},
		{"a crash", `panic("no")`, verdict{failed: "TestFirst", tier: "make test"}},
		{"a crash of which the tests are not told", "go func() { panic(0) }(); select {}", verdict{failed: "TestFirst", tier: "make test"}},
		{"no Go", "return x", verdict{broken: "one.go:3:25: undefined: x\n", tier: "make test"}},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			m := mutant{Name: "m", File: "one.go", Old: "return 1", New: test.body, Packages: []string{"."}}
			got, err := try(t.Context(), dir, m, goTest(dir))
			kit.Must(t, err)
			got.output = ""
			got.broken = got.broken[strings.LastIndex(got.broken, "/")+1:] // the folder has another name each time
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	t.Run("a package that is not there", func(t *testing.T) {
		if found, err := goTest(dir)(t.Context(), "", "./nothing"); err == nil && found == (verdict{}) {
			t.Error("its tests pass")
		}
	})
}

func put(t *testing.T, file, text string) {
	t.Helper()
	kit.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	kit.Must(t, os.WriteFile(file, []byte(text), 0o600))
}
