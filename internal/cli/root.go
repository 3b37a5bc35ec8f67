// Package cli has the commands of kubectl krake: how Applications are, what differs on
// their clusters and who has changed it, and what an operator does about that.
//
// They read and write as the user, with the flags and the words of kubectl. Nothing is
// computed otherwise than by webhook and agent: the same functions are called.
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

// Further returns a command of another package. It reaches the hub as the flags of kubectl say.
type Further func(hub func() (*rest.Config, error), out io.Writer) *cobra.Command

// NewCommand returns the command "kubectl krake", which prints to the streams. [Fail] prints
// its errors.
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
	for _, newCommand := range []func(*environment) *cobra.Command{
		newBlameCommand, newDescribeCommand, newDiffCommand, newGetCommand, newHistoryCommand, newHoldCommand, newRenderCommand,
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
		Short: "Show which version of this program it is, and of which Applications it knows",
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
