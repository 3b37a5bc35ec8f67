package ha

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// agents is the number of agents.
const agents = 2

// What all tests share. No other suite uses this control plane, because the
// installation is cluster-wide.
var (
	hub       *kit.Plane
	installed *installation.Installation
)

func TestMain(m *testing.M) {
	kit.Suite{
		Name: "ha",
		Long: "each test waits for a Lease",
		Start: func(ctx context.Context) (err error) {
			hub, err = kit.OpenPlane(ctx, cluster.Options{PretendKubelet: true})
			if err != nil {
				return err
			}
			installed, err = installation.InstallWith(ctx, hub.Cluster, installation.Options{Agents: agents}, os.Stderr)
			return err
		},
		Logs: func() []string { return installed.Logs() },
		Stop: func() error { return hub.Stop() },
	}.Main(m)
}

// leader waits for the next renewal of the Lease, and returns the indices of the
// agent that made it and of the other one.
func leader(t *testing.T) (first, second int) {
	t.Helper()
	begin := hub.Mark(t)
	kit.Eventually(t, func() string {
		renewals := begin.Requests(t, kit.Request.Leads)
		for index := range agents {
			if slices.ContainsFunc(renewals, kit.ByCredential(installed.AgentCredential(index))) {
				first, second = index, agents-1-index
				return ""
			}
		}
		return fmt.Sprintf("no agent renews the Lease: %v", renewals)
	})
	return first, second
}
