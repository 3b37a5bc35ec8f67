// Mutants plants bugs in the product, one at a time, and reports which test catches each. Run it from the root of the
// repository:
//
//	go run ./test/mutants
//	go run ./test/mutants --only 'confine|needs'
//	go run ./test/mutants --sample 12 --results bin/mutants.md
//
// The bugs are in mutants.yaml: the gravest ones, about who may do what, ownership, Leases, deletion, privacy, holds,
// moves between clusters, and the comparison. Each names a function, the syntax that it replaces there, and the tests
// that must catch it. A bug that no test catches makes the command fail, and so does one that does not compile. No source
// is changed: the compiler reads the changed file in place of the other (go test -overlay).
package main

import (
	"context"
	_ "embed"
	"os"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/program"
)

//go:embed mutants.yaml
var list []byte

func main() {
	options := new(Options)
	program.Main("mutants", options, func(ctx context.Context) error {
		bugs, err := read(list)
		if err != nil {
			return err
		}
		return run(ctx, *options, bugs, os.Stdout)
	})
}

// Options are the user's options.
type Options struct {
	Dir     string // the root of the repository; the current folder if empty
	Only    string
	Sample  int // number of bugs, chosen at random; all if 0
	Results string
}

// AddFlags adds the flags, with the current values as defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Only, "only", o.Only, "try only the bugs whose name matches this regular expression")
	flags.IntVar(&o.Sample, "sample", o.Sample, "try only so many bugs, chosen at random")
	flags.StringVar(&o.Results, "results", o.Results, "also write the table of the results to this file")
}
