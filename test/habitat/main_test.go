package habitat

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// processes is the number of processes with the controllers; one of them acts.
const processes = 2

// plane is a control plane with an installation, and with the stand-ins.
type plane struct {
	*kit.Plane

	installation *installation.Installation
	addresses    *addresses
	witness      *witness
}

// shared is the control plane of all tests that need none of their own.
var shared *plane

func TestMain(m *testing.M) {
	kit.Suite{
		Name:   "habitat",
		AtOnce: 8,
		// No other suite uses this control plane, because the installation is cluster-wide.
		Start: func(ctx context.Context) (err error) {
			if shared, err = newPlane(ctx); err != nil {
				return err
			}
			return shared.install(ctx, installation.Options{Overlay: "habitat", Habitats: processes})
		},
		Logs:  func() []string { return shared.installation.Logs() },
		Check: func(context.Context) error { return errors.Join(shared.checkCanaries(), shared.checkRequests()) },
		Stop:  func() error { return shared.stop() },
	}.Main(m)
}

// newPlane starts a control plane with the stand-ins.
func newPlane(ctx context.Context) (*plane, error) {
	started, err := kit.StartPlane(ctx, cluster.Options{PretendKubelet: true})
	if err != nil {
		return nil, err
	}
	p := &plane{Plane: started}
	if p.addresses, err = giveAddresses(ctx, started); err != nil {
		return nil, errors.Join(err, started.Stop())
	}
	return p, nil
}

// install installs webhook, agent and Habitat controllers, and starts the witness.
func (p *plane) install(ctx context.Context, options installation.Options) (err error) {
	if p.installation, err = installation.InstallWith(ctx, p.Cluster, options, os.Stderr); err != nil {
		return err
	}
	p.witness, err = newWitness(ctx, p.Dynamic)
	return err
}

func (p *plane) stop() error {
	if p.witness != nil {
		p.witness.stop()
	}
	p.addresses.stop()
	return p.Stop()
}
