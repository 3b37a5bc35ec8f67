package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
)

// file is a vector file. Files without cases (data behind the vectors) are left out.
type file struct {
	Function string     `json:"function"`
	Cases    []testCase `json:"cases"`
}

// testCase is one vector. Want or WantError is set, scenarios have Spec and Steps.
type testCase struct {
	ID        string         `json:"id"`
	Tags      []string       `json:"tags"`
	Input     map[string]any `json:"input"`
	Want      map[string]any `json:"want"`
	WantError any            `json:"wantError"`
	Spec      map[string]any `json:"spec"`
	Steps     []any          `json:"steps"`
}

// skipTags are the tags of the cases that assume another engine than this one.
// The engine compares literally, as the vectors do, so none is left out.
var skipTags []string

// run gives the number of failed cases.
func run(out io.Writer, dir string) (int, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return 0, fmt.Errorf("find vectors: %w", err)
	}
	if len(paths) == 0 {
		return 0, fmt.Errorf("no vector files in %s", dir)
	}
	failed := 0
	for _, path := range paths {
		n, err := runFile(out, path)
		if err != nil {
			return failed, fmt.Errorf("run %s: %w", path, err)
		}
		failed += n
	}
	return failed, nil
}

func runFile(out io.Writer, path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read vectors: %w", err)
	}
	var vectors file
	if err := json.Unmarshal(text, &vectors); err != nil {
		return 0, fmt.Errorf("parse vectors: %w", err)
	}
	if len(vectors.Cases) == 0 {
		return 0, nil
	}
	passed, failed, skipped := 0, 0, 0
	for _, c := range vectors.Cases {
		if slices.ContainsFunc(c.Tags, func(tag string) bool { return slices.Contains(skipTags, tag) }) {
			skipped++
			continue
		}
		if diff := c.check(vectors.Function); diff != "" {
			failed++
			fmt.Fprintf(out, "FAIL %s/%s %v (-want +got)\n%s\n", vectors.Function, c.ID, c.Tags, diff)
			continue
		}
		passed++
	}
	fmt.Fprintf(out, "%-32s %4d passed, %d failed, %d skipped\n", filepath.Base(path), passed, failed, skipped)
	return failed, nil
}

// check gives the difference between what is wanted and what the engine does.
func (c testCase) check(name string) string {
	if name == "scenarios" {
		return c.scenario()
	}
	f, ok := functions[name]
	if !ok {
		return "unknown function " + name
	}
	got, err := f(newState(c.Input))
	switch {
	case c.WantError != nil && name == "validate":
		return cmp.Diff(findings(c.WantError), findings(got["errors"]))
	case c.WantError != nil && err == nil:
		return fmt.Sprintf("want an error, got %v", got)
	case c.WantError != nil:
		return ""
	case err != nil:
		return "error: " + err.Error()
	case name == "validate":
		return cmp.Diff(findings(c.Want["warnings"]), findings(got["warnings"]))
	}
	return cmp.Diff(normal(c.Want), normal(got))
}

// normal gives what JSON makes of a value, with all numbers as floats.
func normal(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name, v := range value {
			fields[name] = normal(v)
		}
		return fields
	case []any:
		items := make([]any, len(value))
		for i, v := range value {
			items[i] = normal(v)
		}
		return items
	case int64:
		return float64(value)
	}
	return value
}

// findings cuts findings down to what the vectors fix: code and path.
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
