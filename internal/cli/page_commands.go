// Package page has the command ui, and reads what its page shows.
package cli

import "github.com/spf13/cobra"

// pageCommands returns the commands of this package.
func pageCommands(e *environment) []*cobra.Command {
	return []*cobra.Command{newUICommand(e)}
}
