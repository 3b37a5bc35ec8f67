// Package program is the main function of the commands below test/.
package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

// Options are the flags of a command. If they have a method Validate() error, what it
// refuses ends the command.
type Options interface {
	AddFlags(flags *pflag.FlagSet)
}

// Main parses the flags, unless options is nil, and runs the command until it ends or is
// interrupted, which ends the context. After an error, which is printed behind the name,
// the exit code is 1.
func Main(name string, options Options, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // this is a main
	err := parse(options)
	if err == nil {
		err = run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1) //nolint:forbidigo // this is a main
	}
}

func parse(options Options) error {
	if options == nil {
		return nil
	}
	options.AddFlags(pflag.CommandLine)
	pflag.Parse()
	if checked, ok := options.(interface{ Validate() error }); ok {
		return checked.Validate()
	}
	return nil
}
