// Kubectl-krake is for whoever runs Applications, and for the administrator of a hub.
// On the PATH it is "kubectl krake".
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // as kubectl logs in

	"github.com/krake-observer/krake-observer/internal/cli"
	"github.com/krake-observer/krake-observer/internal/enrol"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}).ExecuteContext(ctx)
	stop()
	os.Exit(cli.Fail(err, os.Stderr))
}

func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	root := cli.NewCommand(streams)
	root.AddCommand(newEnrolCommand(streams.Out), newRemoveCommand(streams.Out))
	return root
}

func newEnrolCommand(out io.Writer) *cobra.Command {
	var options enrol.Options
	return clusterCommand("enrol", "Make a cluster a target of the hub", &options, func(ctx context.Context, cluster string) error {
		options.Cluster = cluster
		if err := options.Validate(); err != nil {
			return err
		}
		return enrol.Enrol(ctx, options, out)
	})
}

func newRemoveCommand(out io.Writer) *cobra.Command {
	var options enrol.RemoveOptions
	return clusterCommand("remove", "Take a cluster out of the hub", &options, func(ctx context.Context, cluster string) error {
		options.Cluster = cluster
		if err := options.Validate(); err != nil {
			return err
		}
		return enrol.Remove(ctx, options, out)
	})
}

// clusterCommand makes a command whose argument is a cluster.
func clusterCommand(name, short string, options interface{ AddFlags(flags *pflag.FlagSet) }, run func(ctx context.Context, cluster string) error) *cobra.Command {
	command := &cobra.Command{
		Use: name + " CLUSTER", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error { return run(command.Context(), arguments[0]) },
	}
	options.AddFlags(command.Flags())
	return command
}
