// Package clusters has the commands for the administrator of a hub: enrol and remove a cluster, check what blocks an uninstall, and
// check the installation.
package cli

import "github.com/spf13/cobra"

// clustersCommands returns the commands of this package.
func clustersCommands(e *environment) []*cobra.Command {
	return []*cobra.Command{newEnrolCommand(e), newRemoveCommand(e), newUninstallCommand(e), newVersionCommand(e)}
}
