package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// run tries the bugs that the options select, and prints a table of the results.
func run(ctx context.Context, options Options, bugs []bug, out io.Writer) error {
	chosen, err := choose(bugs, options)
	if err != nil {
		return err
	}
	if options.Results != "" {
		if err := os.MkdirAll(filepath.Dir(options.Results), 0o755); err != nil {
			return fmt.Errorf("--results: %w", err)
		}
		file, err := os.Create(options.Results)
		if err != nil {
			return fmt.Errorf("--results: %w", err)
		}
		return errors.Join(tryAll(ctx, options.Dir, chosen, io.MultiWriter(out, file)), file.Close())
	}
	return tryAll(ctx, options.Dir, chosen, out)
}

// choose returns the bugs that the options select.
func choose(bugs []bug, options Options) ([]bug, error) {
	only, err := regexp.Compile(options.Only)
	if err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(bugs), func(b bug) bool { return !only.MatchString(b.Name) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no bug matches %q", options.Only)
	}
	if options.Sample > 0 {
		rand.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:min(options.Sample, len(chosen))]
	}
	return chosen, nil
}

func tryAll(ctx context.Context, dir string, bugs []bug, out io.Writer) error {
	if err := checkGreen(ctx, dir, bugs); err != nil {
		return err
	}
	fmt.Fprint(out, "| bug | what a user would suffer | caught by |\n|---|---|---|\n")
	caught := 0
	for _, b := range bugs {
		found, err := try(ctx, dir, b)
		if err != nil {
			return fmt.Errorf("%s: %w", b.Name, err)
		}
		if found.caught != "" {
			caught++
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", b.Name, b.Harm, found)
	}
	fmt.Fprintf(out, "\n%d of %d bugs were caught.\n", caught, len(bugs))
	if caught < len(bugs) {
		return errors.New("a bug that survives needs a test, and one that does not compile a correction of the list")
	}
	return nil
}

// checkGreen checks that the tests pass without a bug: if they fail anyway, every bug seems caught. It also finds
// mistakes of the list before the first bug is tried.
func checkGreen(ctx context.Context, dir string, bugs []bug) error {
	var mistakes []error
	names := map[string][]string{} // of tests, by package
	for _, b := range bugs {
		_, _, err := b.plant(dir)
		mistakes = append(mistakes, err)
		folder, name, _ := strings.Cut(b.Tests, " -run ")
		names[folder] = append(names[folder], cmp.Or(name, "."))
	}
	if err := errors.Join(mistakes...); err != nil {
		return err
	}
	for _, folder := range slices.Sorted(maps.Keys(names)) {
		found, err := goTest(ctx, dir, "", folder+" -run "+strings.Join(names[folder], "|"))
		if err == nil && found != (verdict{}) {
			err = fmt.Errorf("without any bug, %s: %s", folder, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// try runs the tests against a bug.
func try(ctx context.Context, dir string, b bug) (verdict, error) {
	path, text, err := b.plant(dir)
	if err != nil {
		return verdict{}, err
	}
	original, err := filepath.Abs(path)
	if err != nil {
		return verdict{}, err
	}
	folder, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return verdict{}, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	changed, overlay := filepath.Join(folder, filepath.Base(path)), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err := errors.Join(err, os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return verdict{}, err
	}
	return goTest(ctx, dir, overlay, b.Tests)
}
