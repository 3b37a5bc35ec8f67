// Package inspect has the commands that show Applications: get, describe, diff, history and blame.
package cli

import "github.com/spf13/cobra"

// inspectCommands returns the commands of this package.
func inspectCommands(e *environment) []*cobra.Command {
	return []*cobra.Command{newBlameCommand(e), newDescribeCommand(e), newDiffCommand(e), newGetCommand(e), newHistoryCommand(e)}
}
