// Gate runs the tests of this module in one of two tiers, and reports progress and a summary. The suites share
// one control plane where possible:
//
//	go run ./test/gate commit              // what a commit needs: go test -short (make test)
//	go run ./test/gate verify              // every test that -short skips or shortens (a part of make verify)
//	go run ./test/gate commit ./test/e2e   // these packages alone
//	go run ./test/gate list                // each test with the tier that runs it
//	go run ./test/gate proofs              // docs/proofs.md: threats and invariants with their tests
//
// A test belongs to the verify tier if its body calls kit.Long or testing.Short. The first runs the test only
// in that tier, and the second uses a smaller sample in the other one. There are no other marks, no build tags,
// and no list of tests to maintain.
//
// The programs of the test cluster must be built before (make cluster).
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/program"
)

func main() {
	options := &Options{AtOnce: 3}
	program.Main("gate", options, func(ctx context.Context) error {
		if err := options.take(pflag.Args()); err != nil {
			return err
		}
		return run(ctx, *options, os.Stdout)
	})
}

// The tiers, which are also commands.
const (
	tierCommit = "commit"
	tierVerify = "verify"
	listTiers  = "list"
	proofs     = "proofs"
)

// Options are the user's options.
type Options struct {
	Command  string
	Packages []string // patterns; by default all of the module
	AtOnce   int
	Results  string
	Show     string
	Record   bool
}

// AddFlags adds the flags, with the current values as defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.AtOnce, "at-once", o.AtOnce, "how many packages run at the same time")
	flags.StringVar(&o.Results, "results", o.Results, "write every test and subtest with its result and seconds to this file")
	flags.StringVar(&o.Show, "show", o.Show, "print this file, which the tests have written, before the summary")
	flags.BoolVar(&o.Record, "record", o.Record, "write the seconds of each package to "+secondsFile+", by which packages are ordered and the remaining time is estimated")
}

// take parses the arguments, and returns an error for those that exclude each other.
func (o *Options) take(arguments []string) error {
	if len(arguments) > 0 {
		o.Command, o.Packages = arguments[0], arguments[1:]
	}
	switch o.Command {
	case tierCommit, tierVerify, listTiers, proofs:
	default:
		return fmt.Errorf("%q is no command: use %s, %s, %s or %s", o.Command, tierCommit, tierVerify, listTiers, proofs)
	}
	if o.AtOnce < 1 {
		return fmt.Errorf("--at-once: %d is less than 1", o.AtOnce)
	}
	return nil
}
