// Package create has the commands that prepare Applications: create and import make them of manifests and of running objects,
// schema shows and proposes observer schemas, render shows what the webhook would make of a file, and account creates the service
// account that the agent writes as.
package create

import (
	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/internal/cli/env"
)

// Commands returns the commands of this package.
func Commands(e *env.Environment) []*cobra.Command {
	return []*cobra.Command{newAccountCommand(e), newCreateCommand(e), newImportCommand(e), newRenderCommand(e), newSchemaCommand(e)}
}
