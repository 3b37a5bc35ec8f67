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
	"regexp"
	"slices"
)

// run tries the bugs that the options select, and prints a table of the results.
func run(ctx context.Context, options Options, bugs []bug, out io.Writer) (err error) {
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
		defer func() { err = errors.Join(err, file.Close()) }()
		out = io.MultiWriter(out, file)
	}
	var mistakes []error
	for _, b := range chosen {
		_, _, err := b.plant(options.Dir)
		mistakes = append(mistakes, err)
	}
	if err := errors.Join(mistakes...); err != nil {
		return err
	}
	if err := checkGreen(ctx, options.Dir, chosen); err != nil {
		return err
	}
	fmt.Fprint(out, "| bug | what a user would suffer | caught by |\n|---|---|---|\n")
	caught := 0
	for _, b := range chosen {
		found, err := try(ctx, options.Dir, b)
		if err != nil {
			return fmt.Errorf("%s: %w", b.Name, err)
		}
		if found.caught != "" {
			caught++
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", b.Name, b.Harm, found)
	}
	fmt.Fprintf(out, "\n%d of %d bugs were caught.\n", caught, len(chosen))
	if caught < len(chosen) {
		return errors.New("a bug that survives needs a test, and one that does not compile a correction of the list")
	}
	return nil
}

func (v verdict) String() string {
	switch {
	case v.broken != "":
		return "DOES NOT COMPILE: " + v.broken
	case v.caught != "":
		return "`" + v.caught + "`"
	}
	return "SURVIVED"
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

// checkGreen checks that the tests pass without a bug: if they fail anyway, every bug seems caught.
func checkGreen(ctx context.Context, dir string, bugs []bug) error {
	var all []string
	for _, b := range bugs {
		all = append(all, b.Tests)
	}
	slices.Sort(all)
	for _, tests := range slices.Compact(all) {
		found, err := goTest(ctx, dir, "", tests)
		if err == nil && found != (verdict{}) {
			err = fmt.Errorf("without any bug, go test %s fails: %s", tests, found)
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
	folder, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return verdict{}, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	original, err := filepath.Abs(path)
	if err != nil {
		return verdict{}, err
	}
	changed, overlay := filepath.Join(folder, filepath.Base(path)), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return verdict{}, err
	}
	if err := errors.Join(os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return verdict{}, err
	}
	return goTest(ctx, dir, overlay, b.Tests)
}
