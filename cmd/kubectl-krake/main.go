// Kubectl-krake is for the administrator of a hub: it enrols clusters and
// removes them. On the PATH it is "kubectl krake".
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/enrol"
)

const usage = `Make clusters targets of a hub, and take them out again.

Usage:
  kubectl krake enrol CLUSTER --out FOLDER [flags]
  kubectl krake remove CLUSTER [flags]

Each command tells its flags with --help.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	command := ""
	if len(arguments) > 0 {
		command, arguments = arguments[0], arguments[1:]
	}
	switch command {
	case "enrol":
		return runEnrol(ctx, arguments, out)
	case "remove":
		return runRemove(ctx, arguments, out)
	case "", "help", "-h", "--help":
		fmt.Fprint(out, usage)
		return nil
	}
	return fmt.Errorf("unknown command %q: see kubectl krake --help", command)
}

func runEnrol(ctx context.Context, arguments []string, out io.Writer) error {
	var options enrol.Options
	var err error
	if options.Cluster, err = parse("enrol", &options, arguments, out); err != nil {
		return err
	}
	if err := options.Validate(); err != nil {
		return err
	}
	return enrol.Enrol(ctx, options, out)
}

func runRemove(ctx context.Context, arguments []string, out io.Writer) error {
	var options enrol.RemoveOptions
	var err error
	if options.Cluster, err = parse("remove", &options, arguments, out); err != nil {
		return err
	}
	if err := options.Validate(); err != nil {
		return err
	}
	return enrol.Remove(ctx, options, out)
}

// parse reads flags, and the one argument that both commands have.
func parse(command string, options interface{ AddFlags(flags *pflag.FlagSet) }, arguments []string, out io.Writer) (cluster string, err error) {
	flags := pflag.NewFlagSet("kubectl krake "+command+" CLUSTER", pflag.ContinueOnError)
	flags.SetOutput(out)
	options.AddFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		return "", err
	}
	if flags.NArg() != 1 {
		return "", fmt.Errorf("exactly one CLUSTER is wanted: see kubectl krake %s --help", command)
	}
	return flags.Arg(0), nil
}
