package clusters

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

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

// timeout is how long anything may take that a test waits for. It is long,
// because machines are slow, and not because anything needs it.
const timeout = time.Minute

// plane is a control plane, with a client of its administrator.
type plane struct {
	*cluster.Cluster
	kubernetes.Interface
}

// environment is what all tests share.
type environment struct {
	hub, east, west plane
	installation    *installation.Installation
}

var env environment

// planes are all of them, the hub first.
func planes() []plane { return []plane{env.hub, env.east, env.west} }

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clusters:", err)
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
	defer func() { err = errors.Join(err, stop()) }()
	if err := start(ctx); err != nil {
		return 1, err
	}
	env.installation, err = installation.InstallWith(ctx, env.hub.Cluster, installation.Options{Hub: true}, os.Stderr)
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// start starts the control planes, at once.
func start(ctx context.Context) error {
	var group errgroup.Group
	for _, each := range []*plane{&env.hub, &env.east, &env.west} {
		group.Go(func() error {
			started, err := cluster.Start(ctx, cluster.Options{PretendKubelet: true})
			if err != nil {
				return err
			}
			each.Cluster = started
			config := started.RESTConfig()
			config.WarningHandler = rest.NoWarnings{} // kubectl shows them where a test is about them
			each.Interface, err = kubernetes.NewForConfig(config)
			return err
		})
	}
	return group.Wait()
}

func stop() error {
	var failures []error
	for _, each := range planes() {
		if each.Cluster != nil {
			failures = append(failures, each.Stop())
		}
	}
	return errors.Join(failures...)
}

// isLong tells if the tests may take their time.
func isLong() bool { return os.Getenv("KRAKE_E2E_LONG") != "" }
