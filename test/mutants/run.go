package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// outcome is the result of a mutant; without a failed test, it survived.
type outcome struct {
	mutant
	verdict
}

func (o outcome) String() string {
	switch {
	case o.broken != "":
		return "DOES NOT COMPILE\n" + o.broken
	case o.failed != "" && o.invariant != "":
		return "caught by " + o.failed + ", " + o.invariant + o.by()
	case o.failed != "":
		return "caught by " + o.failed + o.by()
	}
	return "SURVIVED"
}

// by returns the tier that caught a planted bug.
func (o outcome) by() string {
	if o.tier == "" {
		return ""
	}
	return " (" + o.tier + ")"
}

// tiers are the tests that run against each bug, in this order, with their additional
// arguments of go test.
var tiers = []struct{ name, argument string }{{"make test", " -short"}, {"make verify", ""}}

// run tries the mutants of the list and reports on each.
func run(ctx context.Context, options Options, list []byte, test tester, out io.Writer) error {
	all, err := read(list)
	if err != nil {
		return err
	}
	if err := validate(options.Dir, all); err != nil {
		return err
	}
	mutants, err := choose(all, options.Only)
	if err != nil {
		return err
	}
	if options.Sample > 0 {
		rand.Shuffle(len(mutants), func(i, j int) {
			mutants[i], mutants[j] = mutants[j], mutants[i]
		})
		mutants = mutants[:min(options.Sample, len(mutants))]
	}
	if options.List {
		for _, m := range mutants {
			fmt.Fprintf(out, "%-44s %-26s %s\n", m.Name, m.File, m.Why)
		}
		return nil
	}
	outcomes, err := tryAll(ctx, options.Dir, mutants, test, out)
	if err != nil {
		return err
	}
	if options.Markdown {
		if err := os.WriteFile(filepath.Join(options.Dir, options.document()), []byte(markdown(options.head(), outcomes)), 0o644); err != nil {
			return err
		}
	}
	return total(outcomes, out)
}

func tryAll(ctx context.Context, dir string, mutants []mutant, test tester, out io.Writer) ([]outcome, error) {
	if err := checkGreen(ctx, mutants, test); err != nil {
		return nil, err
	}
	outcomes := make([]outcome, 0, len(mutants))
	for _, m := range mutants {
		found, err := try(ctx, dir, m, test)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		o := outcome{m, found}
		fmt.Fprintf(out, "%-44s %s\n", m.Name, o)
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// checkGreen checks that the tests pass without a mutant: if they fail anyway, every
// mutant seems caught.
func checkGreen(ctx context.Context, mutants []mutant, test tester) error {
	var packages []string
	for _, m := range mutants {
		packages = append(packages, m.Packages...)
	}
	slices.Sort(packages)
	for _, pkg := range slices.Compact(packages) {
		found, err := test(ctx, "", pkg)
		if err != nil {
			return err
		}
		if found.failed != "" || found.broken != "" {
			return fmt.Errorf("without any mutant, %s: %s\n%s", pkg, outcome{verdict: found}, found.output)
		}
	}
	return nil
}

// try returns the first verdict against a mutant.
func try(ctx context.Context, dir string, m mutant, test tester) (verdict, error) {
	folder, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return verdict{}, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	overlay, err := write(folder, dir, m)
	if err != nil {
		return verdict{}, err
	}
	for _, tier := range tiers {
		for _, pkg := range m.Packages {
			found, err := test(ctx, overlay, pkg+tier.argument)
			if err != nil || found != (verdict{}) {
				found.tier = tier.name
				return found, err
			}
		}
	}
	return verdict{}, nil
}

// write writes the changed file into a folder, with an overlay that makes the compiler
// read it in place of the other. It returns the path of the overlay.
func write(folder, dir string, m mutant) (string, error) {
	text, err := m.changed(dir)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(filepath.Join(dir, m.File))
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(folder, filepath.Base(m.File)), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(overlay, replace, 0o600))
}

// total counts the outcomes, and returns an error if a mutant needs work.
func total(outcomes []outcome, out io.Writer) error {
	var caught, survived, broken, early int
	for _, o := range outcomes {
		switch {
		case o.broken != "":
			broken++
		case o.failed != "":
			caught++
			if o.tier == tiers[0].name {
				early++
			}
		default:
			survived++
		}
	}
	fmt.Fprintf(out, "%d mutants: %d caught (%d of them by %s), %d survived, %d do not compile\n",
		len(outcomes), caught, early, tiers[0].name, survived, broken)
	if caught < len(outcomes) {
		return errors.New("a survivor needs a test, one that does not compile a correction of the list")
	}
	return nil
}
