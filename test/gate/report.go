package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json. For a package, Test is empty.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// result is the outcome of a test.
type result struct {
	Package, Test, Action string
	Seconds               float64
}

// report follows a run. It prints a line for each finished package, and the output of
// failed tests.
type report struct {
	out      io.Writer
	began    time.Time
	expected seconds
	atOnce   int
	waiting  map[string]bool      // packages that have not started
	running  map[string]time.Time // packages, with their start times
	total    int
	taken    seconds
	failed   []string          // packages, and tests as PACKAGE.TEST
	reasons  map[string]string // the first and last lines of each of them
	skipped  map[string][]string
	long     int
	results  []result
	output   map[string][]string // of tests, packages and builds
	shown    time.Time
}

func newReport(out io.Writer, packages []pkg, expected seconds, atOnce int) *report {
	r := &report{
		out: out, began: time.Now(), expected: expected, atOnce: atOnce, total: len(packages), taken: seconds{}, shown: time.Now(),
		waiting: map[string]bool{}, running: map[string]time.Time{}, skipped: map[string][]string{}, output: map[string][]string{},
		reasons: map[string]string{},
	}
	for _, p := range packages {
		r.waiting[p.path] = true
	}
	return r
}

// module is the path of this module.
const module = "github.com/krake-observer/krake-observer/"

// read follows the events until the run ends.
func (r *report) read(events io.Reader) error {
	for decoder := json.NewDecoder(events); ; {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the events of go test: %w", err)
		}
		e.Package = strings.TrimPrefix(e.Package, module)
		r.take(e)
		if time.Since(r.shown) > 30*time.Second {
			r.progress("")
		}
	}
}

func (r *report) take(e event) {
	key := strings.TrimSuffix(e.Package+e.ImportPath+"."+e.Test, ".")
	switch {
	case e.Action == "output" || e.Action == "build-output":
		r.output[key] = append(r.output[key], e.Output)
	case e.Action == "build-fail":
		r.show(key)
	case e.Test != "":
		r.takeTest(key, e)
	case e.Action == "start":
		delete(r.waiting, e.Package)
		r.running[e.Package] = time.Now()
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		r.takePackage(key, e)
	}
}

func (r *report) takeTest(key string, e event) {
	switch e.Action {
	case "pass", "fail", "skip":
	default:
		return
	}
	r.results = append(r.results, result{e.Package, e.Test, e.Action, e.Elapsed})
	switch e.Action {
	case "fail":
		r.fail(key)
	case "skip":
		if reason := reasonOf(r.output[key]); strings.HasPrefix(reason, leftToVerify) {
			r.long++
		} else {
			r.skipped[reason] = append(r.skipped[reason], key)
		}
	}
	delete(r.output, key)
}

// leftToVerify begins the reason of kit.Long.
const leftToVerify = "make verify runs it"

// place is the file and line before a test's message.
var place = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// reasonOf returns the last message of a skipped test.
func reasonOf(output []string) string {
	for _, line := range slices.Backward(output) {
		if place.MatchString(line) {
			return strings.TrimSpace(place.ReplaceAllString(line, ""))
		}
	}
	return "it says no reason"
}

func (r *report) takePackage(key string, e event) {
	delete(r.waiting, e.Package)
	delete(r.running, e.Package)
	r.taken[e.Package] = e.Elapsed
	if e.Action == "fail" {
		r.fail(key)
	}
	delete(r.output, key)
	r.progress(fmt.Sprintf("%-4s %s %.0f s", map[string]string{"pass": "ok", "fail": "FAIL", "skip": "ok"}[e.Action], e.Package, e.Elapsed))
}

// reasonLines is the number of the first, and of the last, lines of a failed test that the summary repeats. The first
// ones have the complaint, the last ones what the test did at its end.
const reasonLines = 10

// noise matches lines that explain no failure: the logs of agents and webhooks, and
// the progress that go test reports.
var noise = regexp.MustCompile(`^(\{"|\s*(===|---) (RUN|PAUSE|CONT|NAME|PASS|SKIP)|(ok|FAIL)\s|$)`)

// fail prints the output of a failed test or package. It stores some lines for the
// summary, because the log of a suite is long.
func (r *report) fail(key string) {
	r.failed = append(r.failed, key)
	r.show(key)
	lines := slices.DeleteFunc(slices.Clone(r.output[key]), noise.MatchString)
	if left := len(lines) - 2*reasonLines; left > 0 {
		lines = slices.Replace(lines, reasonLines, reasonLines+left, fmt.Sprintf("    ... %d more lines, see above\n", left))
	}
	r.reasons[key] = strings.Join(lines, "")
}

// show prints the output of a test, package or build.
func (r *report) show(key string) {
	fmt.Fprintf(r.out, "--- %s\n%s", key, strings.Join(r.output[key], ""))
}

// progress prints the progress of the run, after the name of what has just ended.
func (r *report) progress(ended string) {
	r.shown = time.Now()
	line := fmt.Sprintf("[%s] %d of %d packages", time.Since(r.began).Round(time.Second), len(r.taken), r.total)
	if ended != "" {
		line += ": " + ended
	}
	if len(r.running) > 0 {
		line += "; running " + strings.Join(slices.Sorted(maps.Keys(r.running)), ", ")
	}
	if len(r.taken) < r.total {
		line += fmt.Sprintf("; about %s left", r.left().Round(10*time.Second))
	}
	fmt.Fprintln(r.out, line)
}

// left estimates the remaining time from the recorded time of each package.
func (r *report) left() time.Duration {
	var sum, longest float64
	add := func(path string, since time.Duration) {
		remaining := max(r.expected.of(path)-since.Seconds(), 1)
		sum, longest = sum+remaining, max(longest, remaining)
	}
	for path := range r.waiting {
		add(path, 0)
	}
	for path, began := range r.running {
		add(path, time.Since(began))
	}
	return time.Duration(max(sum/float64(r.atOnce), longest) * float64(time.Second))
}

func (r *report) hasFailed() bool { return len(r.failed) > 0 }

// end prints the summary. Its error names the failures.
func (r *report) end() error {
	fmt.Fprintln(r.out)
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(r.out, "skipped: %s: %s\n", reason, strings.Join(r.skipped[reason], ", "))
	}
	for _, key := range r.failed {
		fmt.Fprintf(r.out, "FAIL %s\n%s", key, r.reasons[key])
	}
	tests, skips := 0, 0
	for _, each := range r.results {
		if each.Action != "skip" {
			tests++
		}
	}
	for _, each := range r.skipped {
		skips += len(each)
	}
	summary := fmt.Sprintf("%d packages, %d tests with their subtests, %d failed, %d skipped for the reasons above",
		len(r.taken), tests, len(r.failed), skips)
	if r.long > 0 {
		summary += fmt.Sprintf(", %d left to make verify", r.long)
	}
	fmt.Fprintf(r.out, "%s: %s\n", summary, time.Since(r.began).Round(time.Second))
	switch {
	case r.hasFailed():
		return errors.New("tests have failed")
	case len(r.taken) < r.total:
		return fmt.Errorf("%d packages have not ended", r.total-len(r.taken))
	}
	return nil
}

// write writes the files that the options request.
func (r *report) write(options Options) error {
	var failures []error
	if options.Results != "" {
		var text strings.Builder
		for _, each := range r.results {
			fmt.Fprintf(&text, "%s\t%s\t%s\t%.2f\n", each.Package, each.Test, each.Action, each.Seconds)
		}
		failures = append(failures, os.MkdirAll(filepath.Dir(options.Results), 0o755), os.WriteFile(options.Results, []byte(text.String()), 0o600))
	}
	if options.Record {
		failures = append(failures, r.taken.write(options.Command))
	}
	return errors.Join(failures...)
}
