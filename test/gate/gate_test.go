package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	if err := os.WriteFile(file, []byte(tests), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := findTests(file)
	if err != nil {
		t.Fatal(err)
	}
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
	var out strings.Builder
	report := newReport(&out, []pkg{{path: "x"}, {path: "y"}}, seconds{"y": 60}, 1)
	if err := report.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if err := report.end(); err == nil {
		t.Error("the run is reported as a success")
	}
	for _, want := range []string{
		"the colour is red", "1 of 2 packages: FAIL x 1 s; about 1m0s left", "skipped: there is no Docker: x.TestB", "FAIL x.TestC",
		"1 packages, 1 tests with their subtests, 2 failed, 1 skipped for the reasons above, 1 left to make verify",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
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
	var out strings.Builder
	report := newReport(&out, []pkg{{path: "x"}}, seconds{}, 1)
	if err := report.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if err := report.end(); err == nil {
		t.Error("a failed test is no error")
	}
	const want = "FAIL x.TestA\n    a_test.go:1: want 2\n--- FAIL: TestA (0.00s)\nFAIL x\n1 packages, 1 tests"
	if !strings.Contains(out.String(), want) {
		t.Errorf("want %q in\n%s", want, &out)
	}
}

func TestBuildFailureIsShown(t *testing.T) {
	const events = `{"ImportPath":"x [x.test]","Action":"build-output","Output":"x.go:1: syntax error\n"}
{"ImportPath":"x [x.test]","Action":"build-fail"}
{"Action":"start","Package":"x"}
{"Action":"fail","Package":"x","Elapsed":0}
`
	var out strings.Builder
	report := newReport(&out, []pkg{{path: "x"}}, seconds{}, 1)
	if err := report.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if err := report.end(); err == nil || !strings.Contains(out.String(), "x.go:1: syntax error") {
		t.Errorf("the error is %v, and the output\n%s", err, &out)
	}
}

func TestPackageThatDidNotEndFailsTheRun(t *testing.T) {
	report := newReport(&strings.Builder{}, []pkg{{path: "x"}}, seconds{}, 1)
	if err := report.end(); err == nil {
		t.Error("a run without a result is a success")
	}
}

func TestSecondsOfOneTierLeaveTheOther(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(secondsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, each := range []struct {
		tier  string
		taken seconds
	}{{tierVerify, seconds{"x": 300}}, {tierCommit, seconds{"x": 20, "y": 3}}, {tierCommit, seconds{"y": 4}}} {
		if err := each.taken.write(each.tier); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(secondsFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("commit x 20\ncommit y 4\nverify x 300\n", string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	commit, err := readSeconds(tierCommit)
	if err != nil || commit.of("x") != 20 || commit.of("new") != 5 {
		t.Errorf("read %v, %v", commit, err)
	}
}
