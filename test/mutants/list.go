package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// mutant is a small bug in one file, of the kind that people make.
type mutant struct {
	Name string `json:"name"`
	File string `json:"file"`
	// Old is in the file exactly once, and New replaces it.
	Old string `json:"old"`
	New string `json:"new"`
	// Why is what a user would suffer.
	Why string `json:"why"`
	// Packages are the packages whose tests should find it, the most likely one first;
	// by default the file's own, then the engine.
	Packages []string `json:"packages"`
}

// engine is the package that all others depend on.
const engine = "./pkg/schema"

// read returns the mutants of a list, and completes their packages.
func read(list []byte) ([]mutant, error) {
	var mutants []mutant
	if err := yaml.UnmarshalStrict(list, &mutants); err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	var mistakes []error
	seen := map[string]bool{}
	for i := range mutants {
		m := &mutants[i]
		if seen[m.Name] {
			mistakes = append(mistakes, fmt.Errorf("%s: there are two of this name", m.Name))
		}
		seen[m.Name] = true
		mistakes = append(mistakes, m.validate())
		if len(m.Packages) == 0 {
			m.Packages = slices.Compact([]string{"./" + path.Dir(m.File), engine})
		}
	}
	return mutants, errors.Join(mistakes...)
}

func (m *mutant) validate() error {
	switch {
	case m.Name == "" || m.File == "" || m.Old == "" || m.Why == "":
		return fmt.Errorf("%s: a mutant has a name, a file, an old text and a why", m.Name)
	case m.Old == m.New:
		return fmt.Errorf("%s: old and new are the same", m.Name)
	}
	return nil
}

// changed returns the text of the file with the bug. The old text must be there exactly
// once, so that the planted bug is unambiguous.
func (m *mutant) changed(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, m.File))
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.Name, err)
	}
	before, after, found := strings.Cut(string(text), m.Old)
	switch {
	case !found:
		return "", fmt.Errorf("%s: the old text is not in %s", m.Name, m.File)
	case strings.LastIndex(string(text), m.Old) != len(before):
		return "", fmt.Errorf("%s: the old text is in %s more than once", m.Name, m.File)
	}
	return before + m.New + after, nil
}

// validate reports every mutant whose old text is not in its file exactly once.
func validate(dir string, mutants []mutant) error {
	var mistakes []error
	for _, m := range mutants {
		_, err := m.changed(dir)
		mistakes = append(mistakes, err)
	}
	return errors.Join(mistakes...)
}

func choose(mutants []mutant, only string) ([]mutant, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return !pattern.MatchString(m.Name) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutant matches %q", only)
	}
	return chosen, nil
}
