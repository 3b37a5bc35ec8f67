// Agent carries out the Applications of one cluster: it creates their objects,
// watches them, and reverts the changes of observed fields.
package main

import (
	"context"

	"github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/internal/program"
)

func main() {
	var options agent.Options
	program.Main("agent", &options, func(ctx context.Context) error { return agent.Run(ctx, options) })
}
