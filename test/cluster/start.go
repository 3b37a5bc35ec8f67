package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// startTimeout limits the start of a component. Usually it takes seconds, and longer on
// a busy machine.
const startTimeout = 2 * time.Minute

// Options configure a cluster. The zero value is the usual one.
type Options struct {
	PretendKubelet bool      // a stand-in for the kubelet marks Pods as ready (see PhaseAnnotation)
	AuditPolicy    string    // YAML; DefaultAuditPolicy if empty
	APIServerArgs  []string  // added to the flags of the API server
	ControllerArgs []string  // added to the flags of the controller manager
	Dir            string    // must be empty or missing, and is removed by Stop; by default a temporary folder
	Keep           bool      // Stop does not remove the folder
	Pods           bool      // the tested programs can run in Pods; without it, Open skips kind
	Log            io.Writer // messages for users; os.Stderr if nil
}

func (o Options) log() io.Writer {
	if o.Log == nil {
		return os.Stderr
	}
	return o.Log
}

// Start starts a cluster on this machine, and builds the programs if necessary. It
// returns when the cluster is ready: the API server answers, the controllers run, and
// the namespace default has its ServiceAccount. The end of the context ends only the
// start: Stop ends the cluster.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	binaries, err := Build(ctx, options.log())
	if err != nil {
		return nil, err
	}
	started := time.Now()
	supervisor, err := newSupervisor(options.Dir, options.Keep)
	if err != nil {
		return nil, err
	}
	c := &Cluster{tier: tierLocal, supervisor: supervisor, kubectl: binaries.Kubectl}
	if err := boot(ctx, c, binaries, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster: %w", err), c.Stop())
	}
	fmt.Fprintf(options.log(), "cluster: %s (%s) is ready after %s; its logs are in %s\n",
		c.URL(), binaries.Origin, time.Since(started).Round(100*time.Millisecond), c.Dir())
	return c, nil
}

// boot starts each component when those that it needs are ready.
func boot(ctx context.Context, c *Cluster, binaries Binaries, options Options) error {
	b, err := newControlPlane(c, binaries, options)
	if err != nil {
		return err
	}
	// At its end, the API server would wait for open connections.
	defer b.client.CloseIdleConnections()

	steps := []func(context.Context) error{b.startEtcd, b.startAPIServer, b.startControllerManager}
	if options.PretendKubelet {
		steps = append(steps, b.pretendKubelet)
	}
	for _, step := range append(steps, b.awaitServiceAccount) {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}
