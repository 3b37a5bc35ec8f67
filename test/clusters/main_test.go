package clusters

import (
	"context"
	"errors"
	"os"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// env is what all tests share: a hub with its installation, and two clusters. No other
// suite uses these control planes, because the installation is cluster-wide.
var env struct {
	hub, east, west *kit.Plane
	installation    *installation.Installation
}

// planes returns all control planes, the hub first.
func planes() []*kit.Plane { return []*kit.Plane{env.hub, env.east, env.west} }

func TestMain(m *testing.M) {
	kit.Suite{Name: "clusters", Long: "three clusters", AtOnce: 8, Start: start, Logs: func() []string { return env.installation.Logs() }, Stop: stop}.Main(m)
}

func start(ctx context.Context) error {
	var group errgroup.Group
	for _, each := range []**kit.Plane{&env.hub, &env.east, &env.west} {
		group.Go(func() (err error) {
			*each, err = kit.StartPlane(ctx, cluster.Options{PretendKubelet: true})
			return err
		})
	}
	err := group.Wait()
	if err != nil {
		return err
	}
	env.installation, err = installation.InstallWith(ctx, env.hub.Cluster, installation.Options{Hub: true}, os.Stderr)
	return err
}

func stop() error {
	var failures []error
	for _, each := range planes() {
		if each != nil {
			failures = append(failures, each.Stop())
		}
	}
	return errors.Join(failures...)
}
