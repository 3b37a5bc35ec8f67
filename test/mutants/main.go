// Mutants plants bugs in engine and admission, one at a time, and tells which test finds
// each. Run it from the root of the repository:
//
//	go run ./test/mutants
//	go run ./test/mutants --only 'keys|align'
//
// The bugs are in mutants.yaml. A bug that no test finds makes the command fail;
// so does one that does not compile, or whose old text is not in its file exactly
// once, because that is a mistake in the list. No source is touched: the compiler
// is given the changed file in place of the other (go test -overlay).
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/spf13/pflag"
)

//go:embed mutants.yaml
var list []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	options := Options{}
	options.AddFlags(pflag.CommandLine)
	pflag.Parse()

	err := options.Validate()
	if err == nil {
		err = run(ctx, options, list, goTest("."), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// Options are what the user can choose.
type Options struct {
	Dir      string // the root of the repository; the current folder if empty
	Only     string
	List     bool
	Markdown bool
}

// AddFlags adds the flags, with the present values as defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Only, "only", o.Only, "try only the mutants whose name matches this regular expression")
	flags.BoolVar(&o.List, "list", o.List, "list the mutants and try none")
	flags.BoolVar(&o.Markdown, "markdown", o.Markdown, "also write the results to "+document)
}

// Validate tells what does not go together.
func (o *Options) Validate() error {
	if _, err := regexp.Compile(o.Only); err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	if o.Markdown && (o.List || o.Only != "") {
		return errors.New("--markdown writes the results of all mutants: leave --list and --only out")
	}
	return nil
}
