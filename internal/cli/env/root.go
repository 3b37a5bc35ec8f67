package env

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewRoot returns the command "kubectl krake" with these commands, which print to the streams. [Fail] prints
// its errors.
func NewRoot(streams genericiooptions.IOStreams, commands func(e *Environment) []*cobra.Command) *cobra.Command {
	e := &Environment{IOStreams: streams, Now: time.Now}
	e.Hub = e.NewFlags()
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
	e.Hub.AddFlags(root.PersistentFlags())
	root.AddCommand(commands(e)...)
	return root
}
