// Package cli has the commands of kubectl krake. They show the state of Applications, what
// differs on their clusters, and who has changed it, and let an operator act on that.
//
// They read and write as the user, with the flags and the terms of kubectl. They call the
// same functions as webhook and agent.
package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewCommand returns the command "kubectl krake", which prints to the streams.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return newRoot(streams, allCommands)
}

func allCommands(e *environment) []*cobra.Command {
	return slices.Concat(createCommands(e), inspectCommands(e), pauseCommands(e), clustersCommands(e), pageCommands(e))
}
