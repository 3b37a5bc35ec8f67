// Latency measures the cost of admission when a client creates an Application, on a real API server that it starts and
// stops. Run it from the root of the repository:
//
//	go run ./test/latency
//	go run ./test/latency --rounds 60 --seed 7 --markdown
//
// It posts ConfigMaps of the same size in five ways:
//
//   - plain;
//   - through a webhook that answers with a patch of one operation;
//   - through one that answers at once with a patch like ours;
//   - as an Application of a user whose rights the webhook has just checked;
//   - as an Application of a user that the webhook does not know.
//
// All take turns in an order from the seed, so that other load on the machine affects all of them alike. The figures
// are differences and ratios of simultaneous measurements. They are not compared with limits here, because no machine
// is quiet enough.
//
// The API server calls the replica of the webhook directly. The agent is stopped, and created objects are deleted
// before the next turn.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/program"
)

func main() {
	options := new(Options)
	program.Main("latency", options, func(ctx context.Context) error { return run(ctx, *options, os.Stdout, os.Stderr) })
}

// Options are the user's options.
type Options struct {
	Sizes    []int
	Rounds   int
	Seed     uint64
	Markdown bool
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.IntSliceVar(&o.Sizes, "sizes", []int{10, 100, 250}, "sizes of the manifests, in KiB")
	flags.IntVar(&o.Rounds, "rounds", 30, fmt.Sprintf("how often each kind has its turn, of %d requests", turn))
	flags.Uint64Var(&o.Seed, "seed", 1, "what the order of the turns and the manifests are made from")
	flags.BoolVar(&o.Markdown, "markdown", false, "write the tables as Markdown")
}

// Validate returns an error for unusable options.
func (o *Options) Validate() error {
	var failures []error
	if o.Rounds < 1 {
		failures = append(failures, errors.New("--rounds: there must be one"))
	}
	for _, size := range o.Sizes {
		if size < 5 || size > manifest.MaxBytes>>10 {
			failures = append(failures, fmt.Errorf("--sizes: %d is not from 5 to %d", size, manifest.MaxBytes>>10))
		}
	}
	return errors.Join(failures...)
}
