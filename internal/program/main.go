// Package program has the main function of all programs.
package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

// Flags are the flags of a program. If they have a method Validate() error, its error ends the program.
type Flags interface {
	AddFlags(flags *pflag.FlagSet)
}

// Main is the main function of a program. It parses the flags, unless there are none, and runs the program until it ends, or
// a signal ends its context. It prints an error after the name, and exits with code 1.
func Main(name string, flags Flags, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := parse(flags)
	if err == nil {
		err = run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func parse(flags Flags) error {
	if flags == nil {
		return nil
	}
	flags.AddFlags(pflag.CommandLine)
	pflag.Parse()
	if checked, ok := flags.(interface{ Validate() error }); ok {
		return checked.Validate()
	}
	return nil
}
