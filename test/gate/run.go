package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

// limit is the timeout of go test for a package.
const limit = "20m"

func run(ctx context.Context, options Options, out io.Writer) error {
	patterns := options.Packages
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	packages, err := findPackages(ctx, patterns)
	if err != nil {
		return err
	}
	switch options.Command {
	case listTiers:
		return list(packages, out)
	case proofs:
		writeProofs(packages, out)
		return nil
	}
	return runTier(ctx, options, packages, out)
}

// runTier runs the tests of the packages that belong to the tier.
func runTier(ctx context.Context, options Options, packages []pkg, out io.Writer) error {
	arguments := []string{"test", "-json", "-vet=off", "-count=1", "-timeout=" + limit, "-p=" + strconv.Itoa(options.AtOnce)}
	if options.Command == tierVerify {
		arguments, packages = append(arguments, "-run="+onlyVerify(packages)), slices.DeleteFunc(packages, func(p pkg) bool { return len(p.inVerify()) == 0 })
	} else {
		arguments = append(arguments, "-short")
	}
	if len(packages) == 0 {
		return errors.New("there are no tests in the packages that were named")
	}
	expected, err := readSeconds(options.Command)
	if err != nil {
		return err
	}
	// go test starts with the first package, and the longest must not be the last.
	slices.SortStableFunc(packages, func(a, b pkg) int { return int(expected.of(b.path) - expected.of(a.path)) })
	for _, p := range packages {
		arguments = append(arguments, "./"+p.path)
	}
	report := newReport(out, packages, expected, options.AtOnce)
	err = onShared(ctx, out, func(environment []string) error { return goTest(ctx, arguments, environment, report) })
	if err == nil {
		err = errors.Join(report.write(options), show(options.Show, out))
	}
	return errors.Join(err, report.end())
}

// show prints a file, if one is named.
func show(path string, out io.Writer) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--show: %w", err)
	}
	_, err = fmt.Fprintf(out, "\n%s", text)
	return err
}

// list prints each test with its tiers.
func list(packages []pkg, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, p := range packages {
		for _, t := range p.tests {
			fmt.Fprintf(table, "%s\t%s\t%s\n", p.path, t.name, t.tiers())
		}
	}
	return table.Flush()
}

// onlyVerify returns the -run flag of the verify tier. It also runs tests of other
// packages with the same names.
func onlyVerify(packages []pkg) string {
	var names []string
	for _, p := range packages {
		names = append(names, p.inVerify()...)
	}
	slices.Sort(names)
	return "^(" + strings.Join(slices.Compact(names), "|") + ")$"
}

// onShared starts the control plane that test programs share and builds the commands
// that they install. It calls use with the environment that names both.
func onShared(ctx context.Context, out io.Writer, use func(environment []string) error) (err error) {
	c, err := cluster.Start(ctx, cluster.Options{Log: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	programs, err := installation.BuildPrograms(ctx, filepath.Join(c.Dir(), "programs"), out)
	if err != nil {
		return err
	}
	return use([]string{c.ShareVariable(), programs})
}

// goTest runs go test and passes its events to the report. The report has the failures
// of tests; the returned error is about anything else.
func goTest(ctx context.Context, arguments, environment []string, report *report) error {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stderr = report.out
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute // the suites stop their clusters
	events, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	err = report.read(events)
	ended := command.Wait()
	if exit := new(exec.ExitError); errors.As(ended, &exit) && exit.Exited() && ctx.Err() == nil && report.hasFailed() {
		ended = nil
	}
	return errors.Join(err, ended, ctx.Err())
}
