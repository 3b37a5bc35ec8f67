// Package program has the code that the commands below test/ share: their main
// function, and repeated calls.
package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
)

// Options are the flags of a command. If they have a method Validate() error, its error
// ends the command.
type Options interface {
	AddFlags(flags *pflag.FlagSet)
}

// Main parses the flags, unless options is nil, and runs the command until it ends, or
// an interrupt cancels its context. It prints an error after the name, and exits with
// code 1.
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

// Pause waits for that long. It returns the cause if the context ends before.
func Pause(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(long):
		return nil
	}
}

// Each calls do with the numbers below times, atOnce of them concurrently, until a call
// returns an error.
func Each(ctx context.Context, times, atOnce int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range times {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}
