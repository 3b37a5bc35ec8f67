package clusters

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

func enrolledHub(t *testing.T, clusters []string, configMaps ...*corev1.ConfigMap) *clitest.Hub {
	t.Helper()
	h := clitest.NewHub(t, configMaps...)
	h.Clusters = clusters
	return h
}

func on(t *testing.T, cluster, name string, annotations ...string) *corev1.ConfigMap {
	t.Helper()
	return clitest.Recorded(t, clitest.Admitted(t, clitest.Created(name, append(annotations, application.ClusterAnnotation, cluster)...)), nil)
}

func TestUninstallCheck(t *testing.T) {
	generated := on(t, "local", "shop", application.GeneratedFromAnnotation, "Habitat/shop")
	kept := on(t, "local", "kept")
	kept.Finalizers = append(kept.Finalizers, "example.org/backup")
	moved := on(t, "local", "moved")
	moved.Finalizers = append(moved.Finalizers, application.Finalizer("west"))
	degraded := clitest.Recorded(t, clitest.Admitted(t, clitest.Created("degraded")), func(app *application.Application) { app.Status.State = application.StateDegraded })
	h := enrolledHub(t, []string{"west", "east"},
		on(t, "local", "web"), clitest.Elsewhere(on(t, "east", "api"), "team"), clitest.Deleted(on(t, "local", "leaving")), clitest.Deleted(on(t, "east", "stuck")),
		clitest.Deleted(on(t, "east", "given", application.ForceDeleteAnnotation, "true")), generated, kept, moved, clitest.Deleted(degraded), clitest.Created("free"))
	h.Beat("local", time.Second)
	h.Beat("west", time.Second)
	h.Beat("east", 72*time.Hour)
	out, errOut, err := clitest.Run(t, h, newUninstallCommand, "--check")
	if !errors.Is(err, env.ErrDifferent) || errOut != "" {
		t.Errorf("error %v, warns %q", err, errOut)
	}
	clitest.Golden(t, "uninstall.txt", out)
}

func TestUninstallIsClean(t *testing.T) {
	out, errOut, err := clitest.Run(t, enrolledHub(t, nil, clitest.Created("free")), newUninstallCommand, "--check")
	const want = "Nothing is in the way: no agent holds an Application, and no cluster is enrolled.\n" +
		"No agent holds demo/free: they stay as ConfigMaps.\n" +
		"To uninstall: kubectl delete -k with the folder that was applied, as manifests/overlays/default\n"
	if err != nil || errOut != "" || out != want {
		t.Errorf("error %v, warns %q, prints %q, want %q", err, errOut, out, want)
	}
}

// An unknown state is never taken for an empty one.
func TestUninstallCheckFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("may not"))
	for _, c := range []struct {
		why    string
		refuse string
		want   string
	}{
		{"the Applications", "configmaps", "list the Applications of all namespaces: x is forbidden: may not"},
		{"the clusters", "serviceaccounts", "list the clusters that are enrolled, as ServiceAccounts in namespace krake-agents: x is forbidden: may not"},
	} {
		e := enrolledHub(t, nil)
		e.Refuse(c.refuse, forbidden)
		out, _, err := clitest.Run(t, e, newUninstallCommand, "--check")
		if err == nil || errors.Is(err, env.ErrDifferent) || err.Error() != c.want || out != "" {
			t.Errorf("%s: error %v, want %s; prints %q", c.why, err, c.want, out)
		}
	}
	t.Run("the Leases", func(t *testing.T) {
		e := enrolledHub(t, nil, on(t, "local", "web"))
		e.Refuse("leases", forbidden)
		out, errOut, err := clitest.Run(t, e, newUninstallCommand, "--check")
		if !errors.Is(err, env.ErrDifferent) || !strings.Contains(errOut, "Warning: you may not list Leases in namespace krake-agents") || strings.Contains(out, "stuck") {
			t.Errorf("error %v, warns %q, prints %q", err, errOut, out)
		}
	})
	_, _, err := clitest.Run(t, clitest.NewHub(t), newUninstallCommand)
	check.Fails(t, "without --check", err, "this command does not uninstall")
}
