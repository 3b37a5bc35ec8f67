package admission

import (
	"context"
	"os"
	"testing"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// What all tests share. The installation is cluster-wide, so that the cluster is of this
// suite alone.
var (
	hub       *kit.Plane
	installed *installation.Installation
)

func TestMain(m *testing.M) {
	kit.Suite{
		Name:  "admission",
		Start: start,
		Logs:  func() []string { return installed.Logs() },
		// A server that ends waits five seconds for unused connections, and the API server
		// keeps such: close them, or the webhook seems to hang.
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
		WebhookArgs: []string{"--ca-overlap=5s"}, // one API server takes a CA in within a second
	}, os.Stderr)
	if err != nil {
		return err
	}
	return bindClusterAdmin(ctx)
}
