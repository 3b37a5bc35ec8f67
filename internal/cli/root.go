package cli

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// environment is what the commands share.
type environment struct {
	genericiooptions.IOStreams

	// hub says how to reach the API server with the Applications, and target that with
	// their objects, if it is another one.
	hub    *genericclioptions.ConfigFlags
	target targetFlags
	now    func() time.Time
}

// NewCommand makes the command "kubectl krake". What it prints goes to the streams. Its
// errors are for [Fail] to print.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	e := &environment{IOStreams: streams, now: time.Now}
	e.hub = e.newFlags()
	root := &cobra.Command{
		Use:   "krake",
		Short: "Look at Applications, at what differs on their clusters, and at who has changed it",
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

// newFlags are kubectl's, which show the warnings of an API server as kubectl does.
func (e *environment) newFlags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = rest.NewWarningWriter(e.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		return config
	})
}
