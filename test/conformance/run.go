package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
)

// file is a vector file. A file without a function has data for the vectors.
type file struct {
	Format   int        `json:"format"`
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

// literalTag tags the cases in which the API server stores a value in another form, and
// the case requires a difference.
const literalTag = "api-normalisation"

const scenarios = "scenarios"

// formatVersion is that of the vector files.
const formatVersion = 1

// functionsOf has the functions that each kind of file needs, if that is not its own name.
var functionsOf = map[string][]string{
	scenarios: {"default_schema", "applied_from_spec", "applied_from_response", "observed_from_response", "delta"},
}

type runner struct {
	out    io.Writer
	engine engine
	// semantic: the engine compares values by their meaning in the API.
	semantic bool
}

// tally counts the cases of a file, or of all.
type tally struct {
	passed, failed int
	literal        int // skipped, because the case requires a literal comparison
	missing        int // skipped, because the engine does not offer the function
}

// String has the reasons, so that no skip is unexplained.
func (t tally) String() string {
	text := fmt.Sprintf("%4d passed, %d failed, %d skipped", t.passed, t.failed, t.literal+t.missing)
	var reasons []string
	if t.literal > 0 {
		reasons = append(reasons, literalTag)
	}
	if t.missing > 0 {
		reasons = append(reasons, fmt.Sprintf("%d of functions that are not offered", t.missing))
	}
	if len(reasons) > 0 {
		text += " (" + strings.Join(reasons, ", ") + ")"
	}
	return text
}

func (t *tally) add(other tally) {
	t.passed += other.passed
	t.failed += other.failed
	t.literal += other.literal
	t.missing += other.missing
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
	if total.passed+total.failed == 0 {
		return false, errors.New("no case was run")
	}
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
		vectors, err := read(path)
		if err != nil {
			return tally{}, fmt.Errorf("read vectors %s: %w", path, err)
		}
		if vectors.Function == "" {
			continue
		}
		none = false
		sum, err := r.runFile(vectors)
		if err != nil {
			return tally{}, fmt.Errorf("%s: %w", path, err)
		}
		fmt.Fprintf(r.out, "%s  %s\n", sum, path)
		total.add(sum)
	}
	if none {
		return tally{}, fmt.Errorf("no vector files in %s", dir)
	}
	return total, nil
}

func read(path string) (file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	var vectors file
	if err := json.Unmarshal(text, &vectors); err != nil {
		return file{}, err
	}
	switch _, known := functions[vectors.Function]; {
	case vectors.Function == "": // data for the vectors
	case !known && vectors.Function != scenarios:
		return file{}, fmt.Errorf("unknown function %s", vectors.Function)
	case vectors.Format != formatVersion:
		return file{}, fmt.Errorf("it has format %d, this runner %d", vectors.Format, formatVersion)
	}
	return vectors, nil
}

// runFile returns an error if the engine is broken.
func (r runner) runFile(vectors file) (tally, error) {
	needed, composed := functionsOf[vectors.Function]
	if !composed {
		needed = []string{vectors.Function}
	}
	for _, name := range needed {
		if !slices.Contains(r.engine.offered(), name) {
			return tally{missing: len(vectors.Cases)}, nil
		}
	}
	var sum tally
	for _, c := range vectors.Cases {
		if r.skips(c) {
			sum.literal++
			continue
		}
		diff, err := r.check(vectors.Function, c)
		if err != nil {
			return tally{}, fmt.Errorf("case %s: %w", c.ID, err)
		}
		if diff != "" {
			sum.failed++
			fmt.Fprintf(r.out, "FAIL %s/%s %v (-want +got)\n%s\n", vectors.Function, c.ID, c.Tags, diff)
			continue
		}
		sum.passed++
	}
	return sum, nil
}

func (r runner) skips(c testCase) bool { return r.semantic && slices.Contains(c.Tags, literalTag) }

// check returns the difference between the wanted result and the engine's, or an error if the engine is
// broken.
func (r runner) check(name string, c testCase) (string, error) {
	switch {
	case name == scenarios:
		return r.scenario(c)
	case c.Want == nil && c.WantError == nil:
		return "the case wants nothing", nil
	}
	got, err := r.engine.call(name, c.Input)
	switch {
	case errors.Is(err, errBroken):
		return "", err
	case errors.Is(err, errInputChanged):
		return err.Error(), nil
	case err != nil && (c.WantError == nil || name == "validate"):
		return "error: " + err.Error(), nil
	case name == "validate" && c.WantError != nil:
		return mistakesDiff(c.WantError, got), nil
	case name == "validate":
		return cmp.Diff(found{nil, findings(c.Want["warnings"])}, found{findings(got["errors"]), findings(got["warnings"])}), nil
	case c.WantError != nil:
		return errorDiff(c.WantError, got, err), nil
	}
	return cmp.Diff(normal(c.Want), normal(got)), nil
}

// found has the findings of a validation.
type found struct{ Errors, Warnings []string }

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
