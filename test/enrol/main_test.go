package enrol

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// hub and spoke are the two clusters, which all tests share. No other suite uses them,
// because both get an installation.
var hub, spoke *kit.Plane

func TestMain(m *testing.M) {
	kit.Suite{
		Name:  "enrol",
		Start: start,
		Stop: func() error {
			var failures []error
			for _, each := range []*kit.Plane{hub, spoke} {
				if each != nil {
					failures = append(failures, each.Stop())
				}
			}
			return errors.Join(failures...)
		},
	}.Main(m)
}

// start starts both clusters at once. The hub has everything that a hub needs, except
// the webhook, which would have to run.
func start(ctx context.Context) error {
	var group errgroup.Group
	for _, each := range []**kit.Plane{&hub, &spoke} {
		group.Go(func() (err error) {
			if *each, err = kit.StartPlane(ctx, cluster.Options{}); err != nil {
				return err
			}
			return os.CopyFS(filepath.Join((*each).Dir(), "manifests"), manifests.Files)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := apply(ctx, hub, filepath.Join(hub.Dir(), "manifests", "overlays", "hub")); err != nil {
		return err
	}
	return kubectl(ctx, hub, "delete", "mutatingwebhookconfiguration", "krake-webhook")
}

func apply(ctx context.Context, c *kit.Plane, folder string) error {
	return kubectl(ctx, c, "apply", "-k", folder)
}

// kubectl runs a command, which must neither fail nor warn.
func kubectl(ctx context.Context, c *kit.Plane, arguments ...string) error {
	text, err := kit.TryKubectl(ctx, c.Cluster, "", arguments...)
	if err != nil || strings.Contains(text, "Warning") {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(arguments, " "), err, text)
	}
	return nil
}

func configOfHub() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", hub.Kubeconfig())
}

// optionsFor returns the options to enrol a cluster in a folder of the test.
func optionsFor(t *testing.T, name string) enrol.Options {
	t.Helper()
	options := enrol.Options{Hub: configOfHub}
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	options.AddFlags(flags)
	out := filepath.Join(t.TempDir(), name)
	kit.Must(t, flags.Parse([]string{"--token-duration=1h", "--out", out}))
	options.Cluster = name
	return options
}

// enrolled enrols a cluster, and returns the output.
func enrolled(t *testing.T, options enrol.Options) (said string) {
	t.Helper()
	var out strings.Builder
	kit.Must(t, options.Validate())
	if err := enrol.Enrol(t.Context(), options, &out); err != nil {
		t.Fatalf("enrol %s: %v\n%s", options.Cluster, err, out.String())
	}
	return out.String()
}

var get = metav1.GetOptions{}
