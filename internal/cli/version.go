package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/pkg/application"
)

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

// versionOf gives that of the module, and the commit if the binary was built in its
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
