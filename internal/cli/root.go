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

	"github.com/krake-observer/krake-observer/internal/cli/clusters"
	"github.com/krake-observer/krake-observer/internal/cli/create"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/inspect"
	"github.com/krake-observer/krake-observer/internal/cli/page"
	"github.com/krake-observer/krake-observer/internal/cli/pause"
)

// NewCommand returns the command "kubectl krake", which prints to the streams.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return env.NewRoot(streams, commands)
}

func commands(e *env.Environment) []*cobra.Command {
	return slices.Concat(create.Commands(e), inspect.Commands(e), pause.Commands(e), clusters.Commands(e), page.Commands(e))
}
