package admission

import (
	"context"
	"os"
	"testing"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// What all tests share. No other suite uses this cluster, because the installation is
// cluster-wide.
var (
	hub       *kit.Plane
	installed *installation.Installation
)

func TestMain(m *testing.M) {
	kit.Suite{
		Name:  "admission",
		Start: start,
		Logs:  func() []string { return installed.Logs() },
		// At its end, a server waits five seconds for unused connections, and the API
		// server keeps such connections. They are closed, or the webhook would seem to
		// hang.
		Check: func(context.Context) error { return installed.RefuseWebhook() },
		Stop:  func() error { return hub.Stop() },
	}.Main(m)
}

func start(ctx context.Context) (err error) {
	if hub, err = kit.OpenPlane(ctx, cluster.Options{PretendKubelet: true}); err != nil {
		return err
	}
	installed, err = installation.InstallWith(ctx, hub.Cluster, installation.Options{
		Replicas:    2,
		WebhookArgs: []string{"--ca-overlap=5s"}, // a single API server reads a CA within a second
	}, os.Stderr)
	if err != nil {
		return err
	}
	return bindClusterAdmin(ctx)
}
