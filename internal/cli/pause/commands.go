// Package pause has the commands that stop repairs for some time, and continue them: hold, suspend and resume.
package pause

import (
	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/internal/cli/env"
)

// Commands returns the commands of this package.
func Commands(e *env.Environment) []*cobra.Command {
	return []*cobra.Command{newHoldCommand(e), newResumeCommand(e), newSuspendCommand(e)}
}
