// Agent is the shipped agent with another way to Services: a test cluster has neither
// DNS nor a network to Pods.
package main

import (
	"context"
	"net"
	"os"

	"github.com/spf13/pflag"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/internal/options"
	"github.com/krake-observer/krake-observer/internal/program"
)

func main() { program.Main("agent", nil, run) }

func run(ctx context.Context) error {
	var flags agent.Options
	flags.AddFlags(pflag.CommandLine)
	services := pflag.String("services", "", "address at which every Service is reached")
	pflag.Parse()
	if err := flags.Validate(); err != nil {
		return err
	}
	configs, err := connections(flags)
	if err != nil {
		return err
	}
	configs.DialService = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, *services)
	}
	return agent.RunWith(ctx, flags, configs)
}

// connections returns the configurations that the shipped program makes of the flags.
func connections(flags agent.Options) (agent.Configs, error) {
	const name = "krake-agent"
	logger, err := flags.Logging.Start(os.Stderr)
	if err != nil {
		return agent.Configs{}, err
	}
	target, err := flags.Connection.Config(name)
	if err != nil {
		return agent.Configs{}, err
	}
	hub := target
	if flags.HubKubeconfig != "" {
		if hub, err = (&options.Connection{Kubeconfig: flags.HubKubeconfig}).Config(name); err != nil {
			return agent.Configs{}, err
		}
	}
	return agent.Configs{Hub: hub, Target: target, Registry: ctrlmetrics.Registry, Logger: logger}, nil
}
