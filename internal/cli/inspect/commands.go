// Package inspect has the commands that show Applications: get, describe, diff, history and blame.
package inspect

import (
	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/internal/cli/env"
)

// Commands returns the commands of this package.
func Commands(e *env.Environment) []*cobra.Command {
	return []*cobra.Command{newBlameCommand(e), newDescribeCommand(e), newDiffCommand(e), newGetCommand(e), newHistoryCommand(e)}
}
