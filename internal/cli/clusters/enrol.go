package clusters

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/enrol"
)

func newEnrolCommand(e *env.Environment) *cobra.Command {
	options := enrol.Options{Hub: e.Hub.ToRESTConfig}
	return clusterCommand("enrol", "Make a cluster a target of the hub", &options, &options.Cluster, func(ctx context.Context) error {
		return enrol.Enrol(ctx, options, e.Out)
	})
}

func newRemoveCommand(e *env.Environment) *cobra.Command {
	options := enrol.RemoveOptions{Hub: e.Hub.ToRESTConfig}
	return clusterCommand("remove", "Take a cluster out of the hub", &options, &options.Cluster, func(ctx context.Context) error {
		return enrol.Remove(ctx, options, e.Out)
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
		Use: name + " CLUSTER", Short: short, Args: env.One("cluster"),
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
