package agent

import (
	"context"
	"net"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// name is the agent's user agent, field manager and event source.
const name = "krake-agent"

// Configs are the connections of an agent, and what it needs of its process.
type Configs struct {
	// Hub and Target reach the two API servers. Where these are one, they are the same
	// configuration.
	Hub, Target *rest.Config
	// Registry takes the agent's metrics; nil: they are not served.
	Registry prometheus.Registerer
	Logger   logr.Logger
	// DialService reaches Services by their names; nil: as from a Pod of the target.
	DialService func(ctx context.Context, network, address string) (net.Conn, error)
}
