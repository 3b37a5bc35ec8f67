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
	// showPrivate: values are shown that may be secrets.
	showPrivate bool
	now         func() time.Time
}

// addPrivateTo adds the flag --show-private to a command that looks at objects.
func (e *environment) addPrivateTo(command *cobra.Command) {
	command.Flags().BoolVar(&e.showPrivate, "show-private", false,
		"show values that may be secrets: of the environment and the arguments of containers, of the data of ConfigMaps, of fields that are called passwords; never those of a Secret")
}

// Further makes a command beside those of this package, which reaches the hub as the
// flags of kubectl say.
type Further func(hub func() (*rest.Config, error)) *cobra.Command

// NewCommand makes the command "kubectl krake". What it prints goes to the streams. Its
// errors are for [Fail] to print.
func NewCommand(streams genericiooptions.IOStreams, further ...Further) *cobra.Command {
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
	for _, command := range further {
		root.AddCommand(command(e.hub.ToRESTConfig))
	}
	return root
}

// newFlags are kubectl's, which show the warnings of an API server as kubectl does.
func (e *environment) newFlags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = rest.NewWarningWriter(e.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		return config
	})
}
