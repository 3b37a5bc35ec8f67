// Kubectl-krake is for users of Applications, and for the administrator of a hub.
// On the PATH it is "kubectl krake".
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // as kubectl logs in
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/krake-observer/krake-observer/internal/cli"
	"github.com/krake-observer/krake-observer/internal/enrol"
)

func main() {
	klog.SetLogger(logr.Discard()) // a command reports its error once, and without a log
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}).ExecuteContext(ctx)
	stop()
	os.Exit(cli.Fail(err, os.Stderr))
}

func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return cli.NewCommand(streams, newEnrolCommand, newRemoveCommand)
}

func newEnrolCommand(hub func() (*rest.Config, error), out io.Writer) *cobra.Command {
	options := enrol.Options{Hub: hub}
	return clusterCommand("enrol", "Make a cluster a target of the hub", &options, &options.Cluster, func(ctx context.Context) error {
		return enrol.Enrol(ctx, options, out)
	})
}

func newRemoveCommand(hub func() (*rest.Config, error), out io.Writer) *cobra.Command {
	options := enrol.RemoveOptions{Hub: hub}
	return clusterCommand("remove", "Take a cluster out of the hub", &options, &options.Cluster, func(ctx context.Context) error {
		return enrol.Remove(ctx, options, out)
	})
}

// options are the flags of a command.
type options interface {
	AddFlags(flags *pflag.FlagSet)
	Validate() error
}

// clusterCommand returns a command whose argument is a cluster.
func clusterCommand(name, short string, o options, cluster *string, run func(ctx context.Context) error) *cobra.Command {
	command := &cobra.Command{
		Use: name + " CLUSTER", Short: short, Args: cli.One("cluster"),
		RunE: func(command *cobra.Command, arguments []string) error {
			*cluster = arguments[0]
			if err := o.Validate(); err != nil {
				return err
			}
			return run(command.Context())
		},
	}
	o.AddFlags(command.Flags())
	return command
}
