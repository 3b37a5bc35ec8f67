package cli

import "github.com/spf13/cobra"

// commands are all commands, in the order of the alphabet.
func commands(e *environment) []*cobra.Command {
	return []*cobra.Command{
		newBlameCommand(e),
		newDescribeCommand(e),
		newDiffCommand(e),
		newGetCommand(e),
		newHistoryCommand(e),
		newHoldCommand(e),
		newRenderCommand(e),
		newResumeCommand(e),
		newSchemaCommand(e),
		newSuspendCommand(e),
		newTopCommand(e),
		newUninstallCommand(e),
		newVersionCommand(e),
	}
}
