// Mutants plants bugs in engine and admission, one at a time, and reports which test finds each. Run it from the root
// of the repository:
//
//	go run ./test/mutants
//	go run ./test/mutants --only 'keys|align'
//	go run ./test/mutants --sample 12
//	go run ./test/mutants --faults
//
// The bugs are in mutants.yaml. With --faults they are the agent's bugs in faults.yaml, which the sweeps of test/faults
// must find, in minutes each. A bug that no test finds makes the command fail. A mistake in the list also fails: a bug
// that does not compile, or an old text that is not in its file exactly once. No source is changed: the compiler reads
// the changed file in place of the other (go test -overlay).
//
// The tests of make test run first, and those of make verify if the bug survives them.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/program"
)

//go:embed mutants.yaml
var list []byte

//go:embed faults.yaml
var faults []byte

func main() {
	options := new(Options)
	program.Main("mutants", options, func(ctx context.Context) error {
		chosen := list
		if options.Faults {
			chosen = faults
		}
		return run(ctx, *options, chosen, goTest("."), os.Stdout)
	})
}

// Options are the user's options.
type Options struct {
	Dir      string // the root of the repository; the current folder if empty
	Only     string
	Sample   int // number of mutants, chosen at random; all if 0
	List     bool
	Markdown bool
	// Faults: try the bugs that test/faults must find.
	Faults bool
}

// AddFlags adds the flags, with the current values as defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Only, "only", o.Only, "try only the mutants whose name matches this regular expression")
	flags.IntVar(&o.Sample, "sample", o.Sample, "try only so many mutants, chosen at random")
	flags.BoolVar(&o.List, "list", o.List, "list the mutants and try none")
	flags.BoolVar(&o.Markdown, "markdown", o.Markdown, "also write the results to "+o.document())
	flags.BoolVar(&o.Faults, "faults", o.Faults, "try those bugs of the agent that test/faults has to find")
}

// Validate returns an error for options that exclude each other.
func (o *Options) Validate() error {
	if _, err := regexp.Compile(o.Only); err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	if o.Sample < 0 {
		return fmt.Errorf("--sample: %d is less than 0", o.Sample)
	}
	if o.Markdown && (o.List || o.Only != "" || o.Sample > 0) {
		return errors.New("--markdown writes the results of all mutants: leave --list, --only and --sample out")
	}
	return nil
}
