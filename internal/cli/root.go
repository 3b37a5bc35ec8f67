// Package cli has the commands of kubectl krake. They show the state of Applications, what
// differs on their clusters, and who has changed it, and let an operator act on that.
//
// They read and write as the user, with the flags and the terms of kubectl. They call the
// same functions as webhook and agent.
package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// Further returns a command of another package. It connects to the hub by the flags of kubectl.
type Further func(hub func() (*rest.Config, error), out io.Writer) *cobra.Command

// NewCommand returns the command "kubectl krake", which prints to the streams. [Fail] prints
// its errors.
func NewCommand(streams genericiooptions.IOStreams, further ...Further) *cobra.Command {
	e := &environment{IOStreams: streams, now: time.Now}
	e.hub = e.newFlags()
	root := &cobra.Command{
		Use:   "krake",
		Short: "Show Applications, what differs on their clusters, and who has changed it",
		Annotations: map[string]string{
			cobra.CommandDisplayNameAnnotation: "kubectl krake",
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	e.hub.AddFlags(root.PersistentFlags())
	for _, newCommand := range []func(*environment) *cobra.Command{
		newAccountCommand, newBlameCommand, newCreateCommand, newDescribeCommand, newDiffCommand, newGetCommand, newHistoryCommand, newHoldCommand, newImportCommand,
		newRenderCommand, newResumeCommand, newSchemaCommand, newSuspendCommand, newUICommand, newUninstallCommand, newVersionCommand,
	} {
		root.AddCommand(newCommand(e))
	}
	for _, newCommand := range further {
		root.AddCommand(newCommand(e.hub.ToRESTConfig, streams.Out))
	}
	return root
}
