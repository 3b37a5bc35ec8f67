package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

func enrolledHub(t *testing.T, clusters []string, configMaps ...*corev1.ConfigMap) *hub {
	t.Helper()
	h := newHub(t, configMaps...)
	h.clusters = clusters
	return h
}

func on(t *testing.T, cluster, name string, annotations ...string) *corev1.ConfigMap {
	t.Helper()
	return recorded(t, admitted(t, created(name, append(annotations, application.ClusterAnnotation, cluster)...)), nil)
}

func TestUninstallCheck(t *testing.T) {
	generated := on(t, "local", "shop", application.GeneratedFromAnnotation, "Habitat/shop")
	kept := on(t, "local", "kept")
	kept.Finalizers = append(kept.Finalizers, "example.org/backup")
	moved := on(t, "local", "moved")
	moved.Finalizers = append(moved.Finalizers, application.Finalizer("west"))
	degraded := recorded(t, admitted(t, created("degraded")), func(app *application.Application) { app.Status.State = application.StateDegraded })
	h := enrolledHub(t, []string{"west", "east"},
		on(t, "local", "web"), elsewhere(on(t, "east", "api"), "team"), deleted(on(t, "local", "leaving")), deleted(on(t, "east", "stuck")),
		deleted(on(t, "east", "given", application.ForceDeleteAnnotation, "true")), generated, kept, moved, deleted(degraded), created("free"))
	h.beat("local", time.Second)
	h.beat("west", time.Second)
	h.beat("east", 72*time.Hour)
	out, errOut, err := run(t, h, newUninstallCommand, "--check")
	if !errors.Is(err, errDifferent) || errOut != "" {
		t.Errorf("error %v, warns %q", err, errOut)
	}
	golden(t, "uninstall.txt", out)
}

func TestUninstallIsClean(t *testing.T) {
	out, errOut, err := run(t, enrolledHub(t, nil, created("free")), newUninstallCommand, "--check")
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
		e.refuse(c.refuse, forbidden)
		out, _, err := run(t, e, newUninstallCommand, "--check")
		if err == nil || errors.Is(err, errDifferent) || err.Error() != c.want || out != "" {
			t.Errorf("%s: error %v, want %s; prints %q", c.why, err, c.want, out)
		}
	}
	t.Run("the Leases", func(t *testing.T) {
		e := enrolledHub(t, nil, on(t, "local", "web"))
		e.refuse("leases", forbidden)
		out, errOut, err := run(t, e, newUninstallCommand, "--check")
		if !errors.Is(err, errDifferent) || !strings.Contains(errOut, "Warning: you may not list Leases in namespace krake-agents") || strings.Contains(out, "stuck") {
			t.Errorf("error %v, warns %q, prints %q", err, errOut, out)
		}
	})
	_, _, err := run(t, newHub(t), newUninstallCommand)
	check.Fails(t, "without --check", err, "this command does not uninstall")
}
