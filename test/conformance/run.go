package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// file is a vector file. A file without a function has data for the vectors.
type file struct {
	Function string     `json:"function"`
	Cases    []testCase `json:"cases"`
}

// testCase is one vector. Want or WantError is set, scenarios have Spec and Steps.
type testCase struct {
	ID        string         `json:"id"`
	Tags      []string       `json:"tags"`
	Why       string         `json:"why"`
	Input     map[string]any `json:"input"`
	Want      map[string]any `json:"want"`
	WantError any            `json:"wantError"`
	Spec      map[string]any `json:"spec"`
	Steps     []any          `json:"steps"`
}

// literal tags the cases in which the API server stores a value in another form, and
// the case requires a difference.
const literal = "api-normalisation"

const scenarios = "scenarios"

var errInputChanged = errors.New("the function changes its input")

type runner struct {
	out       io.Writer
	functions map[string]function
	// semantic: values are compared by their meaning in the API, see [refine].
	semantic bool
}

// tally counts the cases of a file, or of all.
type tally struct {
	passed, failed, skipped int
}

// String has the reasons with their numbers, so that no skip is unexplained.
func (t tally) String() string {
	text := fmt.Sprintf("%4d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
	if t.skipped > 0 {
		text += " (" + literal + ")"
	}
	return text
}

func (t *tally) add(other tally) {
	t.passed += other.passed
	t.failed += other.failed
	t.skipped += other.skipped
}

// run runs the folders and reports whether a case failed.
func (r runner) run(dirs []string) (failed bool, err error) {
	var total tally
	for _, dir := range dirs {
		sum, err := r.runDir(dir)
		if err != nil {
			return false, err
		}
		total.add(sum)
	}
	fmt.Fprintf(r.out, "%s  in total\n", total)
	return total.failed > 0, nil
}

func (r runner) runDir(dir string) (tally, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return tally{}, fmt.Errorf("find vectors in %s: %w", dir, err)
	}
	var total tally
	none := true
	for _, path := range paths {
		vectors, err := r.read(path)
		if err != nil {
			return tally{}, fmt.Errorf("read vectors %s: %w", path, err)
		}
		if vectors.Function == "" {
			continue
		}
		none = false
		sum := r.runFile(vectors)
		fmt.Fprintf(r.out, "%s  %s\n", sum, path)
		total.add(sum)
	}
	if none {
		return tally{}, fmt.Errorf("no vector files in %s", dir)
	}
	return total, nil
}

func (r runner) read(path string) (file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	var vectors file
	if err := json.Unmarshal(text, &vectors); err != nil {
		return file{}, err
	}
	name := vectors.Function
	if _, known := r.functions[name]; !known && name != scenarios && name != "" {
		return file{}, fmt.Errorf("unknown function %s", name)
	}
	return vectors, nil
}

func (r runner) runFile(vectors file) tally {
	var sum tally
	for _, c := range vectors.Cases {
		if r.skips(c) {
			sum.skipped++
			continue
		}
		if diff := r.check(vectors.Function, c); diff != "" {
			sum.failed++
			fmt.Fprintf(r.out, "FAIL %s/%s %v (-want +got)\n%s\n", vectors.Function, c.ID, c.Tags, diff)
			continue
		}
		sum.passed++
	}
	return sum
}

func (r runner) skips(c testCase) bool { return r.semantic && slices.Contains(c.Tags, literal) }

// check returns the difference between the wanted result and the engine's.
func (r runner) check(name string, c testCase) string {
	switch {
	case name == scenarios:
		return r.scenario(c)
	case c.Want == nil && c.WantError == nil:
		return "the case wants nothing"
	}
	got, err := r.call(name, c.Input)
	switch {
	case errors.Is(err, errInputChanged):
		return err.Error()
	case c.WantError != nil && name == "validate":
		return mistakesDiff(c.WantError, got)
	case c.WantError != nil:
		return errorDiff(c.WantError, got, err)
	case err != nil:
		return "error: " + err.Error()
	case name == "validate":
		return cmp.Diff(findings(c.Want["warnings"]), findings(got["warnings"]))
	}
	return cmp.Diff(normal(c.Want), normal(got))
}

// mistakesDiff compares findings. Next to errors, a case may list the warnings, but
// need not.
func mistakesDiff(want any, got map[string]any) string {
	mistakes := findings(got["errors"])
	diff := cmp.Diff(findings(want), mistakes)
	all := slices.Sorted(slices.Values(slices.Concat(mistakes, findings(got["warnings"]))))
	if len(mistakes) > 0 && slices.Equal(findings(want), all) {
		return ""
	}
	return diff
}

// errorDiff accepts any error.
func errorDiff(want any, got map[string]any, err error) string {
	if err != nil {
		return ""
	}
	return cmp.Diff(map[string]any{"error": normal(want)}, normal(got))
}

// call runs a function of the engine. It must not change its input.
func (r runner) call(name string, input map[string]any) (map[string]any, error) {
	before := runtime.DeepCopyJSON(input)
	s := newState(input)
	s.semantic = r.semantic
	got, err := r.functions[name](s)
	if diff := cmp.Diff(before, input); diff != "" {
		return nil, fmt.Errorf("%w (-before +after)\n%s", errInputChanged, diff)
	}
	return got, err
}

// normal returns a value after JSON, for which 1.0 is 1.
func normal(value any) (plain any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		return err.Error()
	}
	return plain
}

// findings reduces findings to the parts that the vectors fix: code and path.
func findings(value any) []string {
	items, _ := value.([]any)
	var places []string
	for _, item := range items {
		fields, _ := item.(map[string]any)
		places = append(places, fmt.Sprintf("%v at %v", fields["code"], fields["path"]))
	}
	slices.Sort(places)
	return places
}
