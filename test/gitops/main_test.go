package gitops

import (
	"context"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// What all tests share.
var (
	hub       *kit.Plane
	installed *installation.Installation
)

func TestMain(m *testing.M) {
	kit.Suite{
		Name:   "gitops",
		AtOnce: 16,
		Start: func(ctx context.Context) (err error) {
			log.SetLogger(logr.Discard()) // of the clients, which complain otherwise
			if hub, err = kit.StartPlane(ctx, cluster.Options{}); err != nil {
				return err
			}
			installed, err = installation.Install(ctx, hub.Cluster, os.Stderr)
			return err
		},
		Logs: func() []string { return installed.Logs() },
		Stop: func() error {
			if hub == nil {
				return nil
			}
			return hub.Stop()
		},
	}.Main(m)
}

// song is the manifest of an Application whose object is healthy once it exists.
const song = `
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-song}
data: {title: Octopus's Garden}
`
