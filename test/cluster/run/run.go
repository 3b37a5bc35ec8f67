package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/cluster"
)

// Options are the user's options.
type Options struct {
	Keep      bool
	Dir       string
	BuildOnly bool
	Share     bool
	Command   []string // runs in the cluster, which ends with it
}

// AddFlags adds the flags, with the current values as defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Dir, "dir", o.Dir, "keep logs (audit.log among them) and data in this folder, which must be empty or missing; a temporary one if not set")
	flags.BoolVar(&o.Keep, "keep", o.Keep, "do not remove the folder in the end")
	flags.BoolVar(&o.BuildOnly, "build-only", o.BuildOnly, "build the programs, if they are not built yet, and start nothing")
	flags.BoolVar(&o.Share, "share", o.Share, "have the test programs that the command runs use this cluster, and leave KUBECONFIG unchanged")
	flags.SetInterspersed(false)
}

// Validate reports options that exclude each other.
func (o *Options) Validate() error {
	if o.BuildOnly && len(o.Command) > 0 {
		return errors.New("--build-only takes no command")
	}
	if o.Share && len(o.Command) == 0 {
		return errors.New("--share needs a command")
	}
	return nil
}

// run starts the cluster and stops it when the command or the context ends. If the
// command fails, the error is its exitCode.
func run(ctx context.Context, options Options) (err error) {
	if options.BuildOnly {
		binaries, err := cluster.Build(ctx, os.Stderr)
		if err == nil {
			fmt.Fprintf(os.Stderr, "cluster: %s\n", binaries.Origin)
		}
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Dir: options.Dir, Keep: options.Keep})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()

	if len(options.Command) > 0 {
		variable := "KUBECONFIG=" + c.Kubeconfig()
		if options.Share {
			variable = c.ShareVariable()
		}
		return runCommand(ctx, variable, options.Command)
	}
	fmt.Printf("export KUBECONFIG=%s\n", c.Kubeconfig())
	fmt.Fprintf(os.Stderr, "cluster: audit log %s; Ctrl-C stops the cluster\n", c.AuditLog())
	<-ctx.Done()
	return nil
}

// runCommand runs the user's command with the terminal and the variable. When the context
// ends, it asks the command to end, and waits for it.
func runCommand(ctx context.Context, variable string, args []string) error {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.Env = append(os.Environ(), variable)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := command.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.Exited() {
		return exitCode(exit.ExitCode())
	}
	return err
}

// exitCode is the exit code of the user's command, which has reported its own error.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }
