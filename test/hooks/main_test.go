package hooks

import (
	"context"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

// timeout is how long anything may take that a test waits for. It is long,
// because machines are slow, and not because anything needs it.
const timeout = 2 * time.Minute

// plane is a control plane, with a client of its administrator.
type plane struct {
	*cluster.Cluster
	kubernetes.Interface
}

// environment is what all tests share.
type environment struct {
	hub, east    plane
	installation *installation.Installation
	// local is the cluster that the hub is.
	local   *spoke
	witness *witness
}

var env environment

func planes() []plane { return []plane{env.hub, env.east} }

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hooks:", err)
		code = 1
	}
	os.Exit(code)
}

// atOnce is how many tests run at once, whatever the machine: they wait for others.
const atOnce = "12"

func run(ctx context.Context, m *testing.M) (code int, err error) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := start(ctx); err != nil {
		return 1, err
	}
	code = m.Run()
	if code != 0 {
		showLogs()
	}
	return code, errors.Join(checkCanaries(ctx), checkSecrets())
}

// start starts the control planes, and installs the hub with its agent.
func start(ctx context.Context) error {
	var group errgroup.Group
	for _, each := range []*plane{&env.hub, &env.east} {
		group.Go(func() (err error) {
			*each, err = newPlane(ctx)
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

func newPlane(ctx context.Context) (plane, error) {
	started, err := cluster.Start(ctx, cluster.Options{PretendKubelet: true})
	if err != nil {
		return plane{}, err
	}
	config := started.RESTConfig()
	config.WarningHandler = rest.NoWarnings{} // kubectl shows them where a test is about them
	client, err := kubernetes.NewForConfig(config)
	return plane{started, client}, err
}

// trustTemplates has the programs that are started from now on trust the server of
// TestURLSource.
func trustTemplates(folder string) error {
	file := filepath.Join(folder, "templates-ca.pem")
	server := newTemplates()
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}) // it is always the same
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
		if each.Cluster != nil {
			failures = append(failures, each.Stop())
		}
	}
	return errors.Join(failures...)
}

// isLong tells if the tests may take their time.
func isLong() bool { return os.Getenv("KRAKE_E2E_LONG") != "" }

// showLogs prints the ends of logs: the folders are gone when the tests are.
func showLogs() {
	for _, path := range append(env.installation.Logs(), env.local.Log()) {
		showLog(path)
	}
}

func showLog(path string) {
	const most = 8 << 10
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return // it was never started
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hooks:", err)
		return
	}
	fmt.Fprintf(os.Stderr, "--- end of %s\n", path)
	_, _ = os.Stderr.Write(text[max(0, len(text)-most):]) // best effort: the tests have failed already
}
