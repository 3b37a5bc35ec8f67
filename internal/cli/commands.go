package cli

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// newRoot returns the command "kubectl krake" with these commands, which print to the streams. [Fail] prints
// its errors.
func newRoot(streams genericiooptions.IOStreams, commands func(e *environment) []*cobra.Command) *cobra.Command {
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
	root.AddCommand(commands(e)...)
	return root
}
