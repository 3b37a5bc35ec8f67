package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

const tests = `package x

import "testing"

// Threat A1 of the security specification: a tenant creates a ClusterRole.
func TestAlways(t *testing.T) {}

// Threats A2 and A3, and invariant I1: it takes long.
func TestLong(t *testing.T) { kit.Long(t, "a soak") }

func TestSampled(t *testing.T) {
	if testing.Short() {
		return
	}
}

func FuzzBytes(f *testing.F) {}
func TestMain(m *testing.M)  {}
func testing_(t *testing.T)  {}
`

func TestMarksInTheBodyDecideTheTier(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x_test.go")
	kit.Must(t, os.WriteFile(file, []byte(tests), 0o600))
	found, err := findTests(file)
	kit.Must(t, err)
	want := []test{
		{name: "TestAlways", numbers: []string{"A1"}, proves: "a tenant creates a ClusterRole"},
		{name: "TestLong", long: true, numbers: []string{"A2", "A3", "I1"}, proves: "it takes long"},
		{name: "TestSampled", sampled: true},
		{name: "FuzzBytes"},
	}
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(test{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	packages := []pkg{{path: "x", tests: found}}
	if got, want := onlyVerify(packages), "^(TestLong|TestSampled)$"; got != want {
		t.Errorf("the verify tier runs %s, want %s", got, want)
	}
}

// reportedFailure returns the output of a run of packages, which must be reported as a
// failure. Package y is expected to take a minute.
func reportedFailure(t *testing.T, events string, paths ...string) string {
	t.Helper()
	var packages []pkg
	for _, path := range paths {
		packages = append(packages, pkg{path: path})
	}
	var out strings.Builder
	report := newReport(&out, packages, seconds{"y": 60}, 1)
	kit.Must(t, report.read(strings.NewReader(events)))
	if err := report.end(); err == nil {
		t.Error("the run is reported as a success")
	}
	return out.String()
}

func TestReportNamesFailuresSkipsAndPackagesThatDidNotEnd(t *testing.T) {
	const events = `{"Action":"start","Package":"github.com/krake-observer/krake-observer/x"}
{"Action":"output","Package":"github.com/krake-observer/krake-observer/x","Test":"TestA","Output":"    a_test.go:3: make verify runs it: a soak\n"}
{"Action":"skip","Package":"github.com/krake-observer/krake-observer/x","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"github.com/krake-observer/krake-observer/x","Test":"TestB","Output":"    a_test.go:9: there is no Docker\n"}
{"Action":"skip","Package":"github.com/krake-observer/krake-observer/x","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"github.com/krake-observer/krake-observer/x","Test":"TestC","Output":"    a_test.go:12: the colour is red\n"}
{"Action":"fail","Package":"github.com/krake-observer/krake-observer/x","Test":"TestC","Elapsed":0.5}
{"Action":"fail","Package":"github.com/krake-observer/krake-observer/x","Elapsed":1}
`
	out := reportedFailure(t, events, "x", "y")
	for _, want := range []string{
		"the colour is red", "1 of 2 packages: FAIL x 1 s; about 1m0s left", "skipped: there is no Docker: x.TestB", "FAIL x.TestC",
		"1 packages, 1 tests with their subtests, 2 failed, 1 skipped for the reasons above, 1 left to make verify",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestSummaryRepeatsWhyATestFailed(t *testing.T) {
	const events = `{"Action":"start","Package":"x"}
{"Action":"output","Package":"x","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"x","Test":"TestA","Output":"    a_test.go:1: want 2\n"}
{"Action":"output","Package":"x","Test":"TestA","Output":"{\"level\":\"INFO\"}\n"}
{"Action":"output","Package":"x","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}
{"Action":"fail","Package":"x","Test":"TestA","Elapsed":0}
{"Action":"fail","Package":"x","Elapsed":0}
`
	out := reportedFailure(t, events, "x")
	const want = "FAIL x.TestA\n    a_test.go:1: want 2\n--- FAIL: TestA (0.00s)\nFAIL x\n1 packages, 1 tests"
	if !strings.Contains(out, want) {
		t.Errorf("want %q in\n%s", want, out)
	}
}

// Of a long output, the summary has the complaint at its begin, and the end.
func TestSummaryLeavesOutTheMiddle(t *testing.T) {
	var events, want strings.Builder
	events.WriteString(`{"Action":"start","Package":"x"}` + "\n")
	for i := range 30 {
		fmt.Fprintf(&events, `{"Action":"output","Package":"x","Test":"TestA","Output":"line %d\n"}`+"\n", i)
		switch {
		case i < reasonLines || i >= 30-reasonLines:
			fmt.Fprintf(&want, "line %d\n", i)
		case i == reasonLines:
			want.WriteString("    ... 10 more lines, see above\n")
		}
	}
	events.WriteString(`{"Action":"fail","Package":"x","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"x"}` + "\n")
	if out := reportedFailure(t, events.String(), "x"); !strings.Contains(out, "FAIL x.TestA\n"+want.String()+"FAIL x\n") {
		t.Errorf("want %q in\n%s", want.String(), out)
	}
}

func TestBuildFailureIsShown(t *testing.T) {
	const events = `{"ImportPath":"x [x.test]","Action":"build-output","Output":"x.go:1: syntax error\n"}
{"ImportPath":"x [x.test]","Action":"build-fail"}
{"Action":"start","Package":"x"}
{"Action":"fail","Package":"x","Elapsed":0}
`
	if out := reportedFailure(t, events, "x"); !strings.Contains(out, "x.go:1: syntax error") {
		t.Errorf("the output is\n%s", out)
	}
}

func TestPackageThatDidNotEndFailsTheRun(t *testing.T) {
	reportedFailure(t, "", "x")
}

func TestSecondsOfOneTierLeaveTheOther(t *testing.T) {
	t.Chdir(t.TempDir())
	kit.Must(t, os.MkdirAll(filepath.Dir(secondsFile), 0o755))
	for _, each := range []struct {
		tier  string
		taken seconds
	}{{tierVerify, seconds{"x": 300}}, {tierCommit, seconds{"x": 20, "y": 3}}, {tierCommit, seconds{"y": 4}}} {
		kit.Must(t, each.taken.write(each.tier))
	}
	text, err := os.ReadFile(secondsFile)
	kit.Must(t, err)
	if diff := cmp.Diff("commit x 20\ncommit y 4\nverify x 300\n", string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	commit, err := readSeconds(tierCommit)
	if err != nil || commit.of("x") != 20 || commit.of("new") != 5 {
		t.Errorf("read %v, %v", commit, err)
	}
}

func TestFileIsShownBeforeTheSummary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.md")
	kit.Must(t, os.WriteFile(file, []byte("a table\n"), 0o600))
	var out strings.Builder
	kit.Must(t, show(file, &out))
	check.Equal(t, "shown", "\na table\n", out.String())
	check.Fails(t, "a file that is missing", show(file+".none", &out), "--show: open ")
}
