package habitat

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

// timeout is how long anything may take that a test waits for. It is long,
// because machines are slow, and not because anything needs it.
const timeout = 2 * time.Minute

// processes is how many carry out Habitats; one of them acts.
const processes = 2

// plane is a control plane with clients of its administrator.
type plane struct {
	*cluster.Cluster

	installation *installation.Installation
	typed        kubernetes.Interface
	dynamic      dynamic.Interface
	addresses    *addresses
	witness      *witness
}

// shared is the control plane of all tests but those that need one of their own.
var shared *plane

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "habitat:", err)
		code = 1
	}
	os.Exit(code)
}

// atOnce is how many tests run at once, whatever the machine: they wait for others.
const atOnce = "8"

func run(ctx context.Context, m *testing.M) (code int, err error) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		return 1, err
	}
	shared, err = newPlane(ctx)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.stop()) }()
	if err := shared.install(ctx, installation.Options{Overlay: "habitat", Habitats: processes}); err != nil {
		return 1, err
	}
	code = m.Run()
	if code != 0 {
		showLogs(shared.installation.Logs())
	}
	return code, errors.Join(shared.checkCanaries(), shared.checkRequests())
}

// newPlane starts a control plane, and what is pretended in it.
func newPlane(ctx context.Context) (*plane, error) {
	started, err := cluster.Start(ctx, cluster.Options{PretendKubelet: true})
	if err != nil {
		return nil, err
	}
	p := &plane{Cluster: started}
	config := started.RESTConfig()
	config.WarningHandler = rest.NoWarnings{} // kubectl shows them where a test is about them
	p.typed, err = kubernetes.NewForConfig(config)
	if err == nil {
		p.dynamic, err = dynamic.NewForConfig(config)
	}
	if err == nil {
		p.addresses, err = giveAddresses(ctx, p.typed)
	}
	if err != nil {
		return nil, errors.Join(err, started.Stop())
	}
	return p, nil
}

// install installs webhook, agent and what carries out Habitats, and begins to look.
func (p *plane) install(ctx context.Context, options installation.Options) (err error) {
	if p.installation, err = installation.InstallWith(ctx, p.Cluster, options, os.Stderr); err != nil {
		return err
	}
	p.witness, err = newWitness(ctx, p.dynamic)
	return err
}

func (p *plane) stop() error {
	if p.witness != nil {
		p.witness.stop()
	}
	p.addresses.stop()
	return p.Stop()
}

// showLogs prints the ends of logs: the folders are gone when the tests are.
func showLogs(paths []string) {
	const most = 8 << 10
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, "habitat:", err)
			continue
		}
		fmt.Fprintf(os.Stderr, "--- end of %s\n", path)
		_, _ = os.Stderr.Write(text[max(0, len(text)-most):]) // best effort: the tests have failed already
	}
}
