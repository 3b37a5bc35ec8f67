// Habitat makes Applications of Habitats, for the agent of the cluster to carry out, and
// keeps their peer files.
package main

import (
	"context"

	"github.com/krake-observer/krake-observer/internal/habitat"
	"github.com/krake-observer/krake-observer/internal/program"
)

func main() {
	var options habitat.Options
	program.Main("habitat", &options, func(ctx context.Context) error { return habitat.Run(ctx, options) })
}
