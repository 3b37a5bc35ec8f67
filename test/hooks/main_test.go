package hooks

import (
	"context"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// environment is what all tests share.
type environment struct {
	hub, east    *kit.Plane
	installation *installation.Installation
	// local is the hub, as a cluster.
	local   *spoke
	witness *witness
}

var env environment

func planes() []*kit.Plane { return []*kit.Plane{env.hub, env.east} }

func TestMain(m *testing.M) {
	kit.Suite{
		Name:   "hooks",
		Long:   "two clusters",
		AtOnce: 12,
		Start:  start,
		Logs:   func() []string { return append(env.installation.Logs(), env.local.Log()) },
		Check:  func(ctx context.Context) error { return errors.Join(checkCanaries(ctx), checkSecrets()) },
		Stop:   stop,
	}.Main(m)
}

// start starts the control planes, and installs the hub with its agent. No other suite
// uses these control planes, because the installation is cluster-wide.
func start(ctx context.Context) error {
	var group errgroup.Group
	for _, each := range []**kit.Plane{&env.hub, &env.east} {
		group.Go(func() (err error) {
			*each, err = kit.StartPlane(ctx, cluster.Options{PretendKubelet: true})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	env.witness = newWitness()
	for _, each := range planes() {
		env.witness.watch(ctx, each)
	}
	if err := trustTemplates(env.hub.Dir()); err != nil {
		return err
	}
	var err error
	env.installation, err = installation.InstallWith(ctx, env.hub.Cluster,
		installation.Options{Hub: true, Overlay: "hooks", AgentProgram: "./test/hooks/agent"}, os.Stderr)
	if err != nil {
		return err
	}
	if env.local, err = newSpoke(ctx, application.LocalCluster, env.hub, nil); err != nil {
		return err
	}
	return env.local.Start(ctx)
}

// trustTemplates makes programs that start later trust the server of TestURLSource.
func trustTemplates(folder string) error {
	file := filepath.Join(folder, "templates-ca.pem")
	server := newTemplates()
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}) // the certificate is always the same
	return errors.Join(os.WriteFile(file, certificate, 0o600), os.Setenv("SSL_CERT_FILE", file))
}

func stop() error {
	if env.witness != nil {
		env.witness.stop()
	}
	var failures []error
	if env.local != nil {
		env.local.services.server.Close()
	}
	for _, each := range planes() {
		if each != nil {
			failures = append(failures, each.Stop())
		}
	}
	return errors.Join(failures...)
}
