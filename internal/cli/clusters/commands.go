// Package clusters has the commands for the administrator of a hub: enrol and remove a cluster, check what blocks an uninstall, and
// check the installation.
package clusters

import (
	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/internal/cli/env"
)

// Commands returns the commands of this package.
func Commands(e *env.Environment) []*cobra.Command {
	return []*cobra.Command{newEnrolCommand(e), newRemoveCommand(e), newUninstallCommand(e), newVersionCommand(e)}
}
