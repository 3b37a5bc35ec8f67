// Package pause has the commands that stop repairs for some time, and continue them: hold, suspend and resume.
package cli

import "github.com/spf13/cobra"

// pauseCommands returns the commands of this package.
func pauseCommands(e *environment) []*cobra.Command {
	return []*cobra.Command{newHoldCommand(e), newResumeCommand(e), newSuspendCommand(e)}
}
