// Scale measures what an agent costs its API server and its node when there are
// many Applications, on a real API server that it starts for it and stops again.
// Run it from the root of the repository:
//
//	go run ./test/scale
//	go run ./test/scale --applications 100 --idle 1m
//
// Each Application has a ConfigMap, a Service and a Deployment without Pods. They
// are created while there is no agent; then it starts and has nothing to go by;
// then it is stopped and started again, and must write nothing; then nobody does
// anything, and it must ask for nothing but its Lease, its watches, and now and
// then a list of metadata; and then somebody creates large ConfigMaps that are no
// business of its, and it must not grow. It prints what it has measured, and exits
// with 1 if one of these is not so.
//
// Requests are counted from the API server's audit log. Memory is what the
// process has resident, the least of some seconds.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var options Options
	options.AddFlags(pflag.CommandLine)
	pflag.Parse()

	err := options.Validate()
	if err == nil {
		err = run(ctx, options, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// Options are what the user can choose.
type Options struct {
	Applications int
	Unrelated    int
	Idle         time.Duration
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.Applications, "applications", 1000, "how many Applications, of three objects each")
	flags.IntVar(&o.Unrelated, "unrelated", 200, "how many ConfigMaps of 256 KiB that are no Applications")
	flags.DurationVar(&o.Idle, "idle", 5*time.Minute, "how long nothing happens")
}

// Validate tells what cannot be used.
func (o *Options) Validate() error {
	var failures []error
	if o.Applications < 1 {
		failures = append(failures, errors.New("--applications: there must be one"))
	}
	if o.Unrelated < 0 {
		failures = append(failures, errors.New("--unrelated: must not be negative"))
	}
	if o.Idle < time.Second {
		failures = append(failures, errors.New("--idle: must be at least 1s"))
	}
	return errors.Join(failures...)
}
