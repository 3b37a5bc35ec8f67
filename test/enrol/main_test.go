package enrol

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/cluster"
)

// timeout is how long anything may take that a test waits for. It is long,
// because machines are slow, and not because anything needs it.
const timeout = 2 * time.Minute

// hub and spoke are the two clusters, which all tests share.
var hub, spoke *cluster.Cluster

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	tests := onSpoke{ctx, installed{ctx, m}}
	code := cluster.RunAlone(ctx, tests, func(c *cluster.Cluster) { hub = c })
	stop()
	os.Exit(code)
}

// onSpoke runs tests with a second cluster.
type onSpoke struct {
	ctx   context.Context
	tests interface{ Run() int }
}

func (o onSpoke) Run() int {
	return cluster.RunAlone(o.ctx, o.tests, func(c *cluster.Cluster) { spoke = c })
}

// installed runs tests on a hub that has what a hub needs, but for the webhook,
// which would have to run.
type installed struct {
	ctx   context.Context
	tests interface{ Run() int }
}

func (i installed) Run() int {
	if err := i.install(); err != nil {
		fmt.Fprintln(os.Stderr, "enrol:", err)
		return 1
	}
	return i.tests.Run()
}

func (i installed) install() error {
	for _, c := range []*cluster.Cluster{hub, spoke} {
		if err := os.CopyFS(filepath.Join(c.Dir(), "manifests"), manifests.Files); err != nil {
			return err
		}
	}
	if err := apply(i.ctx, hub, filepath.Join(hub.Dir(), "manifests", "overlays", "hub")); err != nil {
		return err
	}
	return kubectl(i.ctx, hub, "delete", "mutatingwebhookconfiguration", "krake-webhook")
}

func apply(ctx context.Context, c *cluster.Cluster, folder string) error {
	return kubectl(ctx, c, "apply", "-k", folder)
}

// kubectl runs a command, which must neither fail nor warn.
func kubectl(ctx context.Context, c *cluster.Cluster, arguments ...string) error {
	command := exec.CommandContext(ctx, c.Kubectl(), append([]string{"--kubeconfig", c.Kubeconfig()}, arguments...)...)
	text, err := command.CombinedOutput()
	if err != nil || strings.Contains(string(text), "Warning") {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(arguments, " "), err, text)
	}
	return nil
}

// client is that of the administrator.
func client(t *testing.T, c *cluster.Cluster) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// optionsFor are options by which a cluster is enrolled in a folder of the test's.
func optionsFor(t *testing.T, name string) enrol.Options {
	t.Helper()
	options := enrol.Options{Hub: enrol.Connection{Kubeconfig: hub.Kubeconfig()}}
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	options.AddFlags(flags)
	out := filepath.Join(t.TempDir(), name)
	if err := flags.Parse([]string{"--token-duration=1h", "--out", out}); err != nil {
		t.Fatal(err)
	}
	options.Cluster = name
	return options
}

// enrolled enrols a cluster, and gives what was said.
func enrolled(t *testing.T, options enrol.Options) (said string) {
	t.Helper()
	var out strings.Builder
	if err := options.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := enrol.Enrol(t.Context(), options, &out); err != nil {
		t.Fatalf("enrol %s: %v\n%s", options.Cluster, err, out.String())
	}
	return out.String()
}

// newNamespace makes a namespace on the hub.
func newNamespace(t *testing.T, name string) {
	t.Helper()
	if err := kubectl(t.Context(), hub, "create", "namespace", name); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until there is no problem.
func eventually(t *testing.T, problem func() string) {
	t.Helper()
	deadline := time.After(timeout)
	for {
		text := problem()
		if text == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatal(text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var get = metav1.GetOptions{}
