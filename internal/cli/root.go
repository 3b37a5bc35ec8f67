// Package cli has the commands of kubectl krake. They show the state of Applications, what
// differs on their clusters, and who has changed it, and let an operator act on that.
//
// They read and write as the user, with the flags and the terms of kubectl. They call the
// same functions as webhook and agent.
package cli

import (
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
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
		newBlameCommand, newCreateCommand, newDescribeCommand, newDiffCommand, newGetCommand, newHistoryCommand, newHoldCommand, newRenderCommand,
		newResumeCommand, newSchemaCommand, newSuspendCommand, newTopCommand, newUninstallCommand, newVersionCommand,
	} {
		root.AddCommand(newCommand(e))
	}
	for _, newCommand := range further {
		root.AddCommand(newCommand(e.hub.ToRESTConfig, streams.Out))
	}
	return root
}

func newVersionCommand(e *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program, and the format of Applications that it knows",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			fmt.Fprintf(e.Out, "kubectl krake %s, for Applications of format %s\n", versionOf(info), application.Format)
			return nil
		},
	}
}

// versionOf returns the version of the module, and the commit if the binary was built in its
// repository.
func versionOf(info *debug.BuildInfo) string {
	if info == nil {
		return "of an unknown version"
	}
	text := info.Main.Version
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			text += ", commit " + setting.Value
		}
	}
	return text + ", " + info.GoVersion
}
